-- What the last claim asked for: those that follow may ask for the same. The place and the end that its slots get are
-- put into words when the first of them is granted.
local LASTS, HOLDS, WAIT, PRIORITY, AGEING, WAITED, STRATEGY, LEAST, MOST = 1, 2, 3, 4, 5, 6, 7, 8, 9
local PLACE, TOLD, STEAL = 10, 11, 12
local ask
local draw, stealing, line -- which slot is next, what others have, who waits: parts that follow

-- Grants these slots, and picks as many more as are missing: nothing, if what should be ready is not.
local function grant(holder, count, slots)
  local ends, lines = ask[LASTS], {}
  if not ask[PLACE] then ask[PLACE], ask[TOLD] = format('%d', WHEN_DUE + ends), format(' %d ', ends) end
  for i = 1, count do
    local s = slots[i] or draw('pick')(ask[STRATEGY], count - i + 1)
    if not s then
      -- Nobody hears of what was granted before.
      for at = 1, i - 1 do settle(slots[at]) end
      return nil
    end
    slots[i] = s
    s[ENDS] = ends
    put(s, 'l', ask[PLACE])
    if s[MARK] ~= pool[EPOCH] then
      if s[KIND] ~= 'u' then s[KIND] = 'd' end
      s[MARK] = pool[EPOCH]
    end
    local top = pool[TOP] + 1
    if top < now then top = now end
    pool[TOP] = top
    s[FENCE], s[HOLDER], s[SINCE], s[HOLD] = top, holder, now, ask[HOLDS]
    s[RANK], s[CLAIMANT] = ask[PRIORITY], ''
    local fence = top == now and now_told or format('%d', top)
    lines[i] = ' ' .. s[ID] .. ' ' .. fence .. ask[TOLD] .. s[KIND] .. ' ' .. s[FLOOR]
  end
  return count == 1 and 'granted 1' .. lines[1] or 'granted ' .. count .. table.concat(lines)
end
