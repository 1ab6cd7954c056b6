-- What the records of all requests need of the server is read before the first write.
-- Memory that may have been lost shows in the server's identity, in a client's fence, in a client's clock.
local replication = call('INFO', 'replication')
local at = string.find(replication, 'master_replid:', 1, true)
local current = at and match(replication, '^%x+', at + 14) or '-'
if defined then
  if incarnation ~= current or seen > top or jumped then
    epoch, lost_at, top = max(now, epoch + 1), now, max(top, seen)
    if tickets > 0 then line('clear')() end
  end
  if tickets > 0 then line('sweep')() end
  local overdue = call('ZRANGEBYSCORE', PLACES, format('%d', WHEN_DUE), format('%d', WHEN_DUE + now), 'LIMIT', '0', SWEEP)
  for i = 1, #overdue do
    local s = load(overdue[i])
    if not s then
      call('ZREM', PLACES, overdue[i])
    elseif s.state == 'l' then
      if s.kind ~= 'u' then s.kind = 'd' end
      settle(s, s.ends)
    else
      if s.state == 'h' and tickets > 0 then line('end_offer')(s.holder, s.id) end
      if s.mode == 'e' or s.mode == 'p' then
        make_ready(s)
        save(s)
      else
        settle(s, s.ends)
      end
    end
  end
end
incarnation = current

-- The releases come first: their records are read together.
local ids, next = {}, cursor + 1
while ARGV[next] == 'release' and #ids < CHUNK do
  ids[#ids + 1] = ARGV[next + 1]
  next = next + 6
end
if ids[2] then
  local packed = call('HMGET', SLOTS, unpack(ids))
  for i = 1, #ids do
    if not records[ids[i]] then unfold(ids[i], packed[i]) end
  end
end

local lines, said = { '' }, 1
while cursor < words do
  local at, name, answer = cursor, ARGV[cursor + 1], nil
  if name == 'more' then
    cursor = at + 3
    waited = tonumber(ARGV[at + 3])
    answer = claim(ARGV[at + 2])
  elseif name == 'release' then
    cursor = at + 6
    answer = release(ARGV[at + 2], tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4]), ARGV[at + 5], ARGV[at + 6])
  elseif name == 'claim' then
    ttl, max_hold, wait = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4]), ARGV[at + 5] == '1'
    longest = max(longest, ttl)
    priority, ageing, waited = tonumber(ARGV[at + 6]), tonumber(ARGV[at + 7]), tonumber(ARGV[at + 8])
    if ARGV[at + 9] == 'any' then
      cursor = at + 12
      strategy, least, most = ARGV[at + 10], tonumber(ARGV[at + 11]), tonumber(ARGV[at + 12])
      answer = claim(ARGV[at + 2])
    elseif ARGV[at + 9] == 'these' then
      cursor = at + 11
      least, most = tonumber(ARGV[at + 10]), tonumber(ARGV[at + 11])
      answer = seldom('these')(ARGV[at + 2])
    else
      cursor = at + 9
      answer = seldom('named')(ARGV[at + 2])
    end
  else
    cursor = at + 1
    answer = seldom(name)()
  end
  said = said + 1
  lines[said] = answer
end

if tickets > 0 then line('serve')() end
arrange()
flush()
freed = max(min(freed, certain + doubtful), 0)
if waiters_until <= now then freed = 0 end
table.insert(called, 1, format('%d', freed))
local calls = concat(called, ' ')
lines[1] = format('done %d %d ', now, top) .. calls
local answer = concat(lines, '\n')
call('SET', META, pack(POOL, SCHEMA, last, shift, epoch, lost_at, longest, doubt_rest, top, waiters_until, arrived,
  certain, doubtful, heaviest, tickets, namers, incarnation))
if sequence ~= '-' then
  local keep_until = (not_after == '-' and now or tonumber(not_after)) + LANE_GRACE
  local milliseconds = format('%d', math.ceil((keep_until - now) / 1000))
  call('SET', LANE, format('%s %d\n', sequence, keep_until) .. answer, 'PX', milliseconds)
end
-- A user without rights to the channel must not fail here, after the writes: waiters ask again by themselves.
if freed > 0 or called[2] then redis.pcall('PUBLISH', channel, calls) end
return answer
