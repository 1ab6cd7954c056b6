-- Claims on what holders of lower priority have. The functions are made when somebody steals.
local claims
function stealing(name)
if claims then return claims[name] end
claims = { stirred = 0 } -- how often somebody claimed a lease or let go of one

local function standing(holder)
  local card = line('find')(holder)
  return card and not card.offered and card.ends > now and card
end
-- Whether it can have a slot that is given back: only who wants all of its names has those that leave with their lease.
local function can_use(card, s)
  return card.count == 0 or s[MODE] == 'e'
end
-- The priority of a slot's claimant, if it still waits and has a use for it.
local function claimant(s)
  local card = s[CLAIMANT] ~= '' and standing(s[CLAIMANT])
  return card and can_use(card, s) and card.priority
end
-- Has a lease end then.
local function end_at(s, ends)
  if ends == s[ENDS] then return put(s, 'l') end
  s[ENDS] = ends
  put(s, 'l', format('%d', WHEN_DUE + ends))
end
local function forget(s)
  claims.stirred = claims.stirred + 1
  s[CLAIMANT] = ''
  end_at(s, s[AGREED])
end
-- The priority of whoever claims a lease that is to be renewed; one that has gone is forgotten.
function claims.heed(s)
  local priority = claimant(s)
  if not priority then forget(s) end
  return priority
end
-- Whether a slot that is due goes on being leased, because whoever ended it early has gone.
function claims.reverts(s)
  if s[STATE] ~= 'l' or claimant(s) then return false end
  s[CLAIMANT], s[ENDS] = '', s[AGREED]
  if s[ENDS] <= now then return false end
  put(s, 'l', format('%d', WHEN_DUE + s[ENDS]))
  return true
end
-- Who else claims a slot that this ticket could claim: itself (0), nobody (1), a lower one (2); nil if it cannot.
local function rival(s, holder, priority)
  if s[STATE] ~= 'l' or s[RANK] >= priority then return nil end
  local other = claimant(s)
  if not other then return 1 end
  if s[CLAIMANT] == holder then return 0 end
  return other < priority and 2 or nil
end
-- The slots that may be in the way of a ticket that steals: of its names those that others have, or the first that come due;
-- and how many are wanting. A free name for which another waits first is neither in the way nor had.
local function ways_of(holder, card)
  local ids, ways, there, count = card.ids, {}, 0, card.count
  if not ids[1] then
    arrange()
    ids = call('ZRANGEBYSCORE', PLACES, FROM_DUE, BELOW_LAPSED, 'LIMIT', '0', SWEEP)
    there = pool[CERTAIN] + pool[DOUBTFUL]
  elseif count == 0 then
    count = #ids
  end
  for i = 1, #ids do
    local s = load(ids[i])
    if card.ids[1] and line('is_offered')(s, holder) then
      there = there + 1
    elseif s and (s[STATE] ~= 'r' or not card.ids[1]) then
      ways[#ways + 1] = s
    -- Only for who wants all of them is one made that is not there.
    elseif (s or card.count == 0) and line('head')(ids[i]) == holder then
      there = there + 1
    end
  end
  return ways, math.max(count - there, 0)
end
-- As many of them as are wanting: those that it has claimed before, then those of the lowest holders. None while there are
-- enough only with those that rest or are offered to others, and nil if there are not.
local function victims(holder, card, ways, wanting)
  local found, keys, coming = {}, {}, 0
  for _, s in ipairs(ways) do
    if can_use(card, s) then
      local other = rival(s, holder, card.priority)
      if other then
        local key = (other == 0 and 0 or 10000000) + s[RANK] * 10 + other
        local at = #keys
        while at > 0 and keys[at] > key do at = at - 1 end
        table.insert(keys, at + 1, key)
        table.insert(found, at + 1, s)
        keys[wanting + 1], found[wanting + 1] = nil, nil
      elseif s[STATE] == 'h' or s[STATE] == 'c' then
        coming = coming + 1
      end
    end
  end
  if #found == wanting then return found end
  return #found + coming >= wanting and {} or nil
end
-- Makes a ticket that steals the claimant of what it waits for; whether it is one now. If a part is out of its reach, it
-- lets go of what it claimed before, and of what it needs no more. So may whoever loses a part to it, who tries anew.
local marks = {} -- of claims, which are told together
local function steal_once(holder, waiting)
  local card = standing(holder)
  if not card or card.steal == '-' then return false end
  local replaced, ways, wanting = {}, ways_of(holder, card)
  local found, chosen = victims(holder, card, ways, wanting), {}
  for _, s in ipairs(found or {}) do chosen[s] = true end
  -- While some of what it needs is about to come back, or others come before it for what is there, it lets go of nothing.
  if not found or #found == wanting and (card.count == 0 or not line('is_behind')('%', card.turn .. holder)) then
    for _, s in ipairs(ways) do
      if s[STATE] == 'l' and s[CLAIMANT] == holder and not chosen[s] then forget(s) end
    end
  end
  if not found then return false end
  for _, s in ipairs(found) do
    if s[CLAIMANT] ~= holder then
      local other = s[CLAIMANT]
      if other ~= '' then
        -- Each once: it looks at all that it wants.
        if not replaced[other] then replaced[#replaced + 1], replaced[other] = other, true end
        end_at(s, s[AGREED])
      end
      s[CLAIMANT], s[AGREED] = holder, s[ENDS]
      claims.stirred = claims.stirred + 1
      marks[#marks + 1] = ' !' .. format('%d', s[FENCE])
      end_at(s, math.min(s[ENDS], now + card.steal))
    end
  end
  for i = #replaced, 1, -1 do waiting[#waiting + 1] = replaced[i] end
  return #found > 0
end
-- Not one within the other: a chain may be long.
function claims.steal(holder)
  local waiting = {}
  local steals = steal_once(holder, waiting)
  while waiting[1] do steal_once(table.remove(waiting), waiting) end
  called, marks = called .. table.concat(marks), {}
  return steals
end

return claims[name]
end

