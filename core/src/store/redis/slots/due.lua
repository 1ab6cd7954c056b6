-- What the records of all requests need of the server is read before the first write.
-- Memory that may have been lost shows in the server's identity, in a client's fence, in a client's clock.
local replication = call('INFO', 'replication')
local at = string.find(replication, 'master_replid:', 1, true)
local current = at and string.sub(replication, at + 14, at + 53) or '-'
if meta then
  if pool[INCARNATION] ~= current or seen > pool[TOP] or args[6] == '1' then
    pool[EPOCH], pool[LOST_AT], pool[TOP] = math.max(now, pool[EPOCH] + 1), now, math.max(pool[TOP], seen)
    if pool[WAITING] > 0 then line('clear')() end
  end
  if pool[WAITING] > 0 then line('sweep')() end
  local overdue = call('ZRANGEBYSCORE', PLACES, FROM_DUE, format('%d', WHEN_DUE + now), 'LIMIT', '0', SWEEP)
  for i = 1, #overdue do
    local s = load(overdue[i])
    if not s then
      call('ZREM', PLACES, overdue[i])
    elseif s[CLAIMANT] ~= '' and stealing('reverts')(s) then -- its lease goes on
    elseif s[STATE] == 'l' then
      if s[KIND] ~= 'u' then s[KIND] = 'd' end
      settle(s, s[ENDS])
    else
      if s[STATE] == 'h' and pool[WAITING] > 0 then line('end_offer')(s[HOLDER], s[ID]) end
      settle(s)
    end
  end
end
pool[INCARNATION] = current

