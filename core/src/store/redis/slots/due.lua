-- What the records of all requests need of the server is read before the first write.
-- Memory that may have been lost shows in the server's identity, in a client's fence, in a client's clock. Fences are
-- times of the store. So one from before the pool was begun is of another pool that was here, and that somebody who
-- knew nothing of it has defined anew: what is forgotten was granted before then.
--@ server/replication
-- Without it a server that lost its memory could not be told from one that did not.
if not at then return redis.error_reply('NOREPLID this server does not tell its master_replid') end
local current = string.sub(replication, at + 14, at + 53)
local load_put_back = load -- as `load`: what is overdue is put back, as there may be more of it than a turn puts back
if meta then
  local epoch, since = pool[EPOCH], nil
  if pool[INCARNATION] ~= current or args[5] == '1' then
    since = now
  elseif seen > 0 and seen < epoch and pool[LOST_AT] < epoch then
    since = epoch
  elseif seen > pool[TOP] then
    since = now
  end
  if since then
    -- A clock that was set back may stand still: the new epoch differs from the old one all the same.
    epoch = math.max(since, epoch + 1)
    -- Who has seen later fences than others, of what was lost, tells of the same loss.
    pool[EPOCH], pool[LOST_AT], pool[TOP] = epoch, epoch, math.max(pool[TOP], seen, epoch)
    -- Nobody who has seen those has heard of it.
    pool[PROLONGED] = pool[TOP]
    if pool[WAITING] > 0 then line('clear')() end
  end
  if pool[WAITING] > 0 then line('sweep')() end
  if now >= pool[DUE] then
    local function put_back(s)
      if s[CLAIMANT] ~= '' and stealing('reverts')(s) then -- its lease goes on
      elseif s[STATE] == 'l' then
        if s[KIND] ~= 'u' then s[KIND] = 'd' end
        settle(s, s[ENDS])
      else
        if s[STATE] == 'h' and pool[WAITING] > 0 then line('lapse')(s) end
        settle(s)
      end
    end
    function load_put_back(id, packed)
      local s = load(id, packed)
      -- What ends just now may have been cut short for who steals it.
      if not s or s[STATE] == 'r' or s[STATE] == 'o' or s[ENDS] >= now then return s end
      put_back(s)
      return load(id)
    end
    local overdue = call('ZRANGEBYSCORE', PLACES, FROM_DUE, format('%d', WHEN_DUE + now), 'LIMIT', '0', SWEEP)
    for i = 1, #overdue do
      local s = load(overdue[i])
      if s then put_back(s) else call('ZREM', PLACES, overdue[i]) end
    end
    -- While some come due the next may be near. Who dies before it has written when its slots do is found out a little
    -- later.
    if not overdue[1] then
      local next = call('ZRANGEBYSCORE', PLACES, FROM_DUE, BELOW_LAPSED, 'WITHSCORES', 'LIMIT', '0', '1')[2]
      pool[DUE] = math.min(next and next - WHEN_DUE or now + LOOK, now + LOOK)
    end
  end
end
pool[INCARNATION] = current

