  said = said + 1
  lines[said] = answer
end

if pool[WAITING] > 0 then line('serve')() end
arrange(true)
freed = math.min(freed, pool[CERTAIN] + pool[DOUBTFUL])
if freed <= 0 or pool[WAITERS_UNTIL] <= now then freed = '0' end
called = freed .. called
local top = pool[TOP]
lines[1] = 'done ' .. now_told .. ' ' .. (top == now and now_told or format('%d', top)) .. ' ' .. called
local answer = table.concat(lines, '\n')
call('SET', META, struct.pack(POOL, unpack(pool, 1, POOL_END)))
if sequence ~= '-' then
  local keep_until = (not_after or now) + LANE_GRACE
  local milliseconds = format('%d', math.ceil((keep_until - now) / 1000))
  call('SET', LANE, sequence .. format(' %d\n', keep_until) .. answer, 'PX', milliseconds)
end
-- A user without rights to the channel must not fail here, after the writes: waiters ask again by themselves.
if called ~= '0' then redis.pcall('PUBLISH', args[2], called) end
return answer
