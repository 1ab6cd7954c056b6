
        if what == 'reset' then
          birth, now = born_after(birth), wall
          used, version, past, epoch = '0', 1, ' ' .. birth, false
          if kind == 'b' then
            furthest, said, said_offset = math.max(furthest, over(ends)), period, tonumber(args[at + 4])
            ends = ending(said, said_offset, now)
            if furthest <= ends then furthest = 0 end
          end
        end
        if gives then
          if what == 'keep' then cost = less(args[at + 5], cost) and add(cost, args[at + 5], -1) or '0' end
          -- What was charged in another birth, or an envelope that was made before something was forgotten, may have been given
          -- back, or performed, before that.
          local forgot = r[ELSEWHERE]
          if parts then forgot = string.sub(parts[6 + 3 * j], 34) ~= birth end
          if forgot then
            stays, cost = stays or epoch and cost ~= '0', '0'
          elseif less(used, cost) then
            cost = used
          end
          if cost ~= '0' then used, version = add(used, cost, -1), version + 1 end
          cost = '0'
        end
        if kind == 'b' then r[ASKED], r[ASKED_VERSION] = used, math.max(version, 1) end
        local sum = add(used, cost, 1)
        allowed = cost == '0' or not less(max, sum)
        if allowed then
          retry = 0
          if charges and cost ~= '0' then
            if birth == 0 then birth = born_after(0) end
            used, version = sum, version + 1
          end
        elseif kind == 'b' and not less(max, cost) then
          retry = over(ends) - now
        end
        remaining = less(used, max) and add(max, used, -1) or '0'
        if used == '0' then reset = 0 elseif kind == 'b' then reset = over(ends) - now end
        -- What was said of it is kept, though nothing is used.
        if known and birth == 0 then birth, version = born_after(0), 1 end
        lasts, mark = lasting(ends, used, birth), 0
        r[NEXT_FIRST], r[NEXT_SECOND], r[NEXT_THIRD], r[NEXT_FOURTH], r[NEXT_FIFTH] = ends, used, version, birth, past
        if kind == 'b' then r[NEXT_SAID], r[NEXT_SAID_OFFSET], r[NEXT_FURTHEST] = said, said_offset, furthest end

      else
        -- Nothing is remembered of it.
        if gives then cost = '0' end
        allowed = #cost < #max or #cost == #max and cost <= max
        remaining, retry, reset, lasts, mark = max, allowed and 0 or nil, 0, 0, 0
      end
