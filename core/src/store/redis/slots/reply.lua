  said = said + 1
  lines[said] = answer
end

if pool[WAITING] > 0 then line('serve')() end
arrange(true)
freed = math.min(freed, pool[CERTAIN] + pool[DOUBTFUL])
local waits = pool[WAITERS_UNTIL] > now
if freed <= 0 or not waits then freed = '0' end
called = freed .. called
if rested and (waits or pool[WAITING] > 0) then called = called .. format(' ~%d', rested - now) end
local top = pool[TOP]
local top_told = top == now and now_told or top == seen and args[4] or format('%d', top)
lines[1] = 'done ' .. now_told .. ' ' .. top_told .. ' ' .. called
if pool[LONGEST] + pool[DOUBT_REST] > quiet then pool[PROLONGED] = top end
if seen <= pool[PROLONGED] then lines[1] = lines[1] .. format(' =%d %d', pool[LONGEST], pool[DOUBT_REST]) end
local answer = said == 2 and lines[1] .. '\n' .. lines[2] or table.concat(lines, '\n')
call('SET', META, struct.pack(POOL, unpack(pool, 1, POOL_END)))
--@ lane/keep
-- A user without rights to the channel must not fail here, after the writes: waiters ask again by themselves.
if called ~= '0' then redis.pcall('PUBLISH', args[7], called) end
return answer
