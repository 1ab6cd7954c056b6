  if name == 'claim' or name == 'more' or name == 'with' then
    local holder, way, why, earliest, names = nil, 'any', nil, nil, nil
    if name == 'more' then
      cursor = at + 3
      holder, ask[WAITED] = args[at + 2], args[at + 3]
    else
      local priority, ageing, steal = 0, '0', '-'
      if name == 'with' then
        priority, ageing, steal = args[at + 2] + 0, args[at + 3], args[at + 4]
        at = at + 4
      end
      holder, way = args[at + 2], args[at + 7]
      local ttl, hold, least, most = args[at + 3] + 0, 0, nil, nil
      if way == 'named' then
        cursor = at + 8 + args[at + 8]
      elseif way == 'any' then
        cursor = at + 10
        least, most = args[at + 9] + 0, args[at + 10] + 0
      elseif way == 'among' then
        cursor = at + 9 + args[at + 9]
        least = args[at + 8] + 0
      else
        cursor = at + 11 + args[at + 11]
        least, most = args[at + 8] + 0, args[at + 9] + 0
      end
      if ttl > pool[LONGEST] then pool[LONGEST] = ttl end
      local lasts = now + ttl
      if args[at + 4] ~= '0' then
        hold = now + args[at + 4]
        if hold < lasts then lasts = hold end
      end
      ask = { lasts, hold, args[at + 5] == '1', priority, ageing, args[at + 6], args[at + 8], least, most, nil, nil,
        steal }
    end

    if pool[LOST_AT] ~= 0 and pool[LOST_AT] + pool[LONGEST] + pool[DOUBT_REST] > now then
      why, earliest = 'quiet', pool[LOST_AT] + pool[LONGEST] + pool[DOUBT_REST]
    elseif pool[WAITING] > 0 then
      -- What came free in this turn may be wanted by its name.
      if way == 'any' and pool[NAMERS] > 0 then line('serve_names')() end
      answer = line('accept')(holder)
    end
    if why or answer then
      way = nil
    elseif way == 'any' then
      local least, most = ask[LEAST], ask[MOST]
      if pool[WAITING] > 0 then line('pass_over')() end
      -- What should have been ready may not have been: it is looked for again.
      repeat
        if pool[CERTAIN] + pool[DOUBTFUL] < least then
          arrange()
          local ready = call('ZCOUNT', PLACES, '-inf', BELOW_DUE)
          if ready ~= pool[CERTAIN] + pool[DOUBTFUL] then draw('count')() end
        end
        local ready = pool[CERTAIN] + pool[DOUBTFUL]
        local behind = pool[WAITING] > 0 and line('precedes')('%', holder)
        if behind and ready >= least and line('serve_first')() then
          -- Who came before it is served first: there may be enough for both.
          line('serve_names')()
        elseif behind or ready < least then
          why, names = total() == 0 and 'noslot' or 'exhausted', {}
        else
          answer = grant(holder, ready < most and ready or most, {})
        end
      until answer or why
    elseif way == 'among' then
      local found, doubtful, seen, missing, kept = {}, {}, {}, false, {}
      local packed = cursor > at + 10 and call('HMGET', SLOTS, unpack(args, at + 10, cursor)) or {}
      names = {}
      for i = at + 10, cursor do
        local s = load_put_back(args[i], packed[i - at - 9])
        if not s then
          missing = true
        elseif not seen[s[ID]] then
          seen[s[ID]] = true
          names[#names + 1] = s[ID]
          if s[STATE] == 'r' then
            local list = s[KIND] == 'd' and doubtful or found
            list[#list + 1] = s
          elseif s[STATE] == 'h' and s[HOLDER] == holder and s[ENDS] > now and #kept < ask[LEAST] then
            kept[#kept + 1] = s
          end
        end
      end
      for i = 1, #doubtful do found[#found + 1] = doubtful[i] end
      if missing then
        why, names = 'noslot', nil
        if pool[WAITING] > 0 then line('withdraw')(holder) end
      else
        local was_kept = kept[1]
        if pool[WAITING] > 0 or was_kept then found = line('those_for')(holder, found, kept) end
        if #found < ask[LEAST] then
          why = 'exhausted'
        elseif was_kept then
          answer = line('grant_kept')(holder, found)
        else
          answer = grant(holder, ask[LEAST], found)
        end
      end
    elseif way == 'free' then
      local packed, found, seen, distinct, new = call('HMGET', SLOTS, unpack(args, at + 12, cursor)), {}, {}, 0, 0
      for i = at + 12, cursor do
        local id = args[i]
        if #found == ask[MOST] then break end
        if not seen[id] then
          seen[id], distinct = true, distinct + 1
          local s = load_put_back(id, packed[i - at - 11])
          local can = not s or s[STATE] == 'r'
          if can then
            can = (s or total() + new < MAX_SLOTS) and not (pool[WAITING] > 0 and line('precedes')(id, holder))
            if can and not s then new = new + 1 end
          elseif s[STATE] == 'l' and s[HOLDER] == holder and (s[MODE] == 'e' or s[MODE] == 'p') then
            -- What it was granted since it asked was granted to a later claim of its.
            can = s[SINCE] <= tonumber(args[at + 10]) and (s[CLAIMANT] == '' or not stealing('heed')(s))
          end
          if can then
            found[#found + 1] = s or id
          elseif s and s[STATE] ~= 'r' and s[STATE] ~= 'o' then
            earliest = math.min(earliest or s[ENDS], s[ENDS])
          end
        end
      end
      local others = #found < ask[MOST] and distinct > #found
      local missing = #found < ask[LEAST]
      for i = 1, #found do
        local s = found[i]
        if missing then
          -- What could have been had comes due too, if it is this holder's.
          if s[STATE] == 'l' then earliest = math.min(earliest or s[ENDS], s[ENDS]) end
        elseif type(s) == 'string' then
          found[i] = load(s, false, 'p')
        elseif s[STATE] == 'l' and s[KIND] ~= 'u' then
          s[KIND] = 'd'
        end
      end
      if missing then
        why = 'exhausted'
      else
        answer = grant(holder, #found, found)
        if others then answer = 'partly ' .. (earliest and format('%d', earliest) or '-') .. string.sub(answer, 8) end
        earliest = nil
      end
    else
      local found, free, new = {}, true, 0
      names = { args[at + 9] }
      for i = at + 10, cursor do
        local id = args[i]
        found[names[1]] = true
        if not found[id] then names[#names + 1], found[id] = id, true end
      end
      -- Each is looked at: one that is overdue is nothing to wait for.
      for i = 1, #names do
        local s = load_put_back(names[i]) or false
        if not s then new = new + 1 end
        free = free and (not s or s[STATE] == 'r') and not (pool[WAITING] > 0 and line('precedes')(names[i], holder))
        found[i] = s
      end
      if free and (new <= pool[ROOM] or total() + new <= MAX_SLOTS) then
        for i = 1, #names do found[i] = found[i] or load(names[i], false, 'p') end
        answer = grant(holder, #names, found)
      else
        why = 'exhausted'
      end
    end
    if answer and way and pool[WAITING] > 0 then line(way == 'free' and 'leave' or 'depart')(holder) end

    if why then
      -- Who is refused waits in the lines of these names, in that of any slot if there are none, or without a ticket.
      -- There is no line for one alone that was to be granted slots that are elsewhere than the counts say.
      if ask[WAIT] and names and why == 'exhausted' and line then
        -- Who names very many may want others besides.
        if way == 'among' and args[at + 9] + 0 >= MANY then pool[WAITERS_UNTIL] = now + INTEREST end
        if line('enter')(holder, names, way) then
          why = 'beyond'
        else
          local ticket = line('find')(holder)
          if ticket and ticket.steal ~= '-' and stealing('steal')(holder) then why = 'claimed' end
        end
      elseif ask[WAIT] then
        pool[WAITERS_UNTIL] = now + INTEREST
      end
      if why == 'beyond' then names = nil end
      if names and names[1] then
        for i = 1, #names do
          local s = load(names[i])
          if s and s[STATE] ~= 'r' and s[STATE] ~= 'o' then earliest = math.min(earliest or s[ENDS], s[ENDS]) end
        end
      elseif names and way == 'any' then
        arrange()
        local due = call('ZRANGEBYSCORE', PLACES, FROM_DUE, BELOW_LAPSED, 'WITHSCORES', 'LIMIT', '0', '1')[2]
        earliest = due and tonumber(due) - WHEN_DUE
      end
      answer = 'refused ' .. why .. (earliest and format(' %d', earliest) or ' -')
    end

