  elseif name == 'release' or name == 'renew' or name == 'resync' then
    local s, fence = load(args[at + 2]), args[at + 3] + 0
    -- The slot of a live lease, or why it is not held.
    if not s then answer = 'lost gone'
    elseif s[FENCE] > fence then answer = 'lost taken'
    elseif s[FENCE] < fence then
      -- One that was never leased was made anew since the lease ended, unless memory was lost since then.
      answer = s[FENCE] == 0 and fence >= pool[EPOCH] and 'lost gone' or 'lost forgotten'
    elseif s[STATE] ~= 'l' then answer = 'lost ended'
    elseif s[ENDS] <= now then answer = 'lost expired'
    end

    if name == 'release' then
      cursor = at + 6
      if not answer then
        local outcome, value, kind, after = args[at + 5], args[at + 6], s[KIND], s[FLOOR]
        if outcome == 'used' then
          if kind == 'k' and not less(after, value) or after ~= '-' and less(value, after) then
            answer = 'backwards ' .. kind .. ' ' .. after
          end
          kind, after = 'k', value
        elseif outcome == 'unsettled' then
          if kind ~= 'u' then kind = 'd' end
        elseif outcome == 'rejected' and value ~= '-' and (after == '-' or not less(value, after)) then
          kind, after = 'k', value
        elseif outcome ~= 'unused' then
          kind = 'd'
          if outcome == 'unknown' and value ~= '-' and (after == '-' or less(after, value)) then after = value end
        end
        if not answer then
          if after ~= s[FLOOR] then s[RAISED] = now end
          s[KIND], s[FLOOR] = kind, after
          local rest = now + args[at + 4]
          if rest > s[REST] then s[REST] = rest end
          -- Who used no nonce adds nothing to a doubt that is older: that has had its rest.
          settle(s, outcome == 'unused' and 0 or now)
          answer = 'released'
        end
      end

    elseif name == 'renew' then
      cursor = at + 4
      local ttl = tonumber(args[at + 4])
      pool[LONGEST] = math.max(pool[LONGEST], ttl)
      local claimed = not answer and s[CLAIMANT] ~= '' and stealing('heed')(s)
      if claimed then
        answer = format('claimed %d %d', s[ENDS], claimed)
      elseif not answer then
        local limit, ends = s[HOLD], now + ttl
        if limit ~= 0 and limit < ends then ends = limit end
        if s[MODE] ~= 'x' and ends > s[ENDS] then
          s[ENDS] = ends
          put(s, 'l', format('%d', WHEN_DUE + ends))
        end
        answer = format('renewed %d', s[ENDS])
      end

    else
      cursor = at + 6
      local chain, floor, rewind = args[at + 4], s and s[FLOOR], args[at + 5] == '1'
      local settles = not answer and s[RAISED] + args[at + 6]
      if answer then -- it is lost
      elseif floor ~= '-' and less(chain, floor) and not rewind and settles > now then
        answer = format('behind %s %d', floor, settles)
      else
        if chain ~= floor then s[RAISED] = now end
        s[KIND], s[FLOOR] = 'k', chain
        put(s, 'l')
        answer = 'resynced ' .. chain
      end
    end

