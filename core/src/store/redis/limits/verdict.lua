
      r[NOW], r[NEXT_LASTS], r[NEXT_EPOCH], r[TURNS] = now, lasts, epoch, turns and (not allowed or kind == 'b')
      if not allowed and (kind ~= 'f' or not retry) then barred = true end
      changes = changes + 1
      changed[changes] = r
      if charges and parts then
        local id, refilled = epoch or string.sub(KEYS[held], -32), r[NEXT_FIFTH]
        if kind == 'c' or kind == 'g' then mark, id = refilled[1], id .. format(' %d', refilled[2]) end
        if money then id = id .. ' ' .. r[NEXT_FOURTH] end
        parts[#parts + 1], parts[#parts + 2], parts[#parts + 3] = mark or now, args[at + 5], id
      end
      if not answer then
        -- Times are told by the wall clock.
        local ahead = now - wall
        if retry then retry = retry + math.min(retry, ahead) end
        -- Amounts of money are texts from the beginning.
        local binds, printed = j == 0, money or kind == 'e'
        if not binds then
          if allowed ~= bound_allowed then
            binds = not allowed
          elseif not allowed then
            binds = bound_retry and (not retry or retry > bound_retry)
          elseif not (printed or bound_printed) then
            binds = remaining < bound_remaining
          else
            -- Printed only where they are told or differ in kind.
            if not printed then remaining, printed = format('%d', remaining), true end
            if not bound_printed then bound_remaining, bound_printed = format('%d', bound_remaining), true end
            binds = #remaining < #bound_remaining or #remaining == #bound_remaining and remaining < bound_remaining
          end
        end
        if binds then
          if (kind == 'c' or kind == 'g') and not reset then
            reset = refilling(r[NEXT_SECOND], r[NEXT_THIRD], period, max)
          end
          reset = reset and reset + math.min(reset, ahead)
          binding, bound_allowed, bound_remaining, bound_printed, bound_retry, bound_reset =
            j, allowed, remaining, printed, retry, reset
        end
      end
    end
  end

  -- All are charged, or none; one that refuses is written if it is kept by another rule from now on, and a budget also if another
  -- does.
  if what ~= 'peek' then
    local whole = answer ~= 'gone' and (answer or bound_allowed)
    for k = 1, changes do
      local r = changed[k]
      local kind = r[KIND]
      -- Nothing is kept for who waits for something else too.
      if barred and kind == 'f' then r[TURNS] = false end
      if r[PLACE] > 0 and (whole or r[TURNS]) then
        if not whole and kind == 'b' then r[NEXT_SECOND], r[NEXT_THIRD] = r[ASKED], r[ASKED_VERSION] end
        r[LASTS] = r[NEXT_LASTS]
        if r[LASTS] ~= 0 then
          r[LAST], r[SHIFT] = r[NOW], r[NOW] - wall
          r[FIRST], r[SECOND], r[THIRD] = r[NEXT_FIRST], r[NEXT_SECOND], r[NEXT_THIRD]
          r[FOURTH], r[FIFTH], r[EPOCH] = r[NEXT_FOURTH], r[NEXT_FIFTH], r[NEXT_EPOCH]
          if kind == 'b' then
            r[SAID], r[SAID_OFFSET], r[FURTHEST] = r[NEXT_SAID], r[NEXT_SAID_OFFSET], r[NEXT_FURTHEST]
          end
          if whole and charges and parts and not r[EPOCH] then r[EPOCH] = string.sub(KEYS[held], -32) end
        else
          -- As if never used, for what comes next in this envelope too.
          r[LAST], r[SHIFT], r[THIRD], r[FOURTH], r[FIFTH], r[EPOCH] = wall, 0, 0, 0, 0, false
          r[FIRST], r[SECOND] = (kind == 'w' or kind == 'f') and {} or 0, (kind == 'b' or kind == 'l') and '0' or 0
          if kind == 'b' then r[SAID], r[SAID_OFFSET], r[FURTHEST] = 0, 0, 0 end
        end
        if not r[DIRTY] then
          r[DIRTY] = true
          written[#written + 1] = r
        end
      end
    end
    if parts and whole and (charges or renews) then
      local ends = wall + ttl
      if renews then ends, parts = math.max(parts[2], ends), { unpack(parts, 4, 3 + 3 * count) } end
      values[held] = struct.pack('<c1dd' .. string.rep('dss', count), 'p', ends, count, unpack(parts))
      later = later or {}
      later[#later + 1] = { KEYS[held], values[held], format('%d', ceil((ends - wall) / 1000) + 1) }
    elseif gives and parts and not renews then
      -- What could not be given back stays charged: who asks once more is not to hear otherwise.
      local state, ends = 'r', parts[2]
      if stays and what == 'return' then answer = 'gone' end
      if what ~= 'return' or stays then state, ends = 'c', wall + ENDED end
      values[held] = state .. struct.pack('<d', ends) .. string.sub(values[held], 10)
      later = later or {}
      later[#later + 1] = { KEYS[held], values[held], format('%d', ceil((ends - wall) / 1000) + 1) }
    end
  end
  if not answer then
    if not bound_printed then bound_remaining = format('%d', bound_remaining) end
    bound_reset = bound_reset and format('%d', bound_reset) or '-'
    if bound_allowed then
      answer = 'yes ' .. binding .. ' ' .. bound_remaining .. ' ' .. bound_reset
    else
      bound_retry = bound_retry and format('%d', bound_retry) or '-'
      answer = 'no ' .. binding .. ' ' .. bound_remaining .. ' ' .. bound_reset .. ' ' .. bound_retry
    end
  end
  line = line + 1
  lines[line] = answer
end

for k = 5, 3 + 2 * of_money, 2 do
  local r = records[args[k]]
  line = line + 1
  -- A budget's period is told to end when it is over.
  local ends, said = r and r[FIRST], r and r[SAID]
  if said and said > 0 then ends = (floor((ends - 1 - r[SAID_OFFSET]) / said) + 1) * said + r[SAID_OFFSET] end
  if r and r[FOURTH] ~= 0 and (r[KIND] == 'l' or ends > r[NOW]) then
    lines[line] = format('%s %d %d %s%s', r[FOURTH], r[THIRD], ends, r[SECOND], r[FIFTH])
  else
    lines[line] = '-'
  end
end
for k = 1, #written do
  local r = written[k]
  local i, kind, lasts = r[PLACE], r[KIND], r[LASTS]
  if lasts == 0 then
    if values[i] then call('DEL', KEYS[i]) end
  else
    local packed
    if kind == 'c' or kind == 'g' then
      packed = struct.pack('<dddddd', r[LAST], r[SHIFT], r[FIRST], r[SECOND], r[THIRD], r[FOURTH])
      if r[EPOCH] then packed = packed .. struct.pack('<dd', r[FIFTH][1], r[FIFTH][2]) .. r[EPOCH] end
    elseif kind == 'b' or kind == 'l' then
      packed = struct.pack(
        MONEY, r[LAST], r[SHIFT], r[FIRST], r[THIRD], r[SAID] or 0, r[SAID_OFFSET] or 0, r[FURTHEST] or 0,
        r[FOURTH], r[SECOND], r[EPOCH] or '', r[FIFTH]
      )
    else
      local cells, round = r[FIRST], r[THIRD]
      local tail = string.rep('d', #cells)
      if kind == 'f' then
        local claim = r[FOURTH] ~= 0 and r[FOURTH] or { 0, 0, 0, 0 }
        packed = struct.pack('<dddddd' .. tail, r[LAST], r[SHIFT], claim[1], claim[2], claim[3], claim[4], unpack(cells))
      elseif round == 0 then
        packed = struct.pack('<ddd' .. tail, r[LAST], r[SHIFT], r[SECOND], unpack(cells))
      else
        packed = struct.pack('<ddddddd', r[LAST], r[SHIFT], -r[SECOND], unpack(round))
        packed = packed .. struct.pack('<' .. tail, unpack(cells))
      end
      if r[EPOCH] then packed = packed .. ' ' .. r[EPOCH] end
    end
    if lasts == 'kept' then
      call('SET', KEYS[i], packed, 'KEEPTTL')
    elseif lasts then
      -- Its own clock may be slower than the one by which keys end.
      lasts = lasts + math.min(lasts, r[SHIFT])
      call('SET', KEYS[i], packed, 'PX', format('%d', ceil(lasts / 1000) + 1))
    else
      call('SET', KEYS[i], packed)
    end
  end
end
if later then
  for k = 1, #later do call('SET', later[k][1], later[k][2], 'PX', later[k][3]) end
end
local answer = table.concat(lines, '\n')
--@ lane/keep
return answer
