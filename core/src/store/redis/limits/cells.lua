
      elseif kind == 'w' or kind == 'f' then
        -- A rolling window's cells (their last time, what was taken), or what is in flight (until when, how much), and the
        -- claim of who waits for that: since when, in which line of which client, until when the claim holds, how much.
        max, cost = tonumber(max), tonumber(cost)
        local window = kind == 'w'
        local cells, live, last, sum, back, lands = r[FIRST], {}, 0, 0, 0, gives and not window and mark
        local span, longest, shortest, round, known, ends, low, high = 0, nil, nil, nil, nil, 0, nil, nil
        if window then
          -- By what periods it is asked: see core/src/limits/periods.rs. Mostly that is one.
          longest, round = r[SECOND], r[THIRD]
          shortest, span, known = longest, longest, 0
          if longest > 0 and (longest ~= period or round ~= 0) then
            if round ~= 0 then
              shortest, ends, low, high = unpack(round)
              known = ends + high
              if ends <= now then shortest, longest, ends = low, high, 0 end
            end
            if ends > 0 or shortest ~= period or longest ~= period then
              shortest, longest = math.min(shortest, period), math.max(longest, period)
              if ends == 0 then ends, low, high = now + longest, period, period end
              low, high = math.min(low, period), math.max(high, period)
            end
            turns = span ~= longest or (round == 0) ~= (ends == 0)
              or round ~= 0 and (shortest ~= round[1] or ends ~= round[2] or low ~= round[3] or high ~= round[4])
            if turns then round = ends > 0 and { shortest, ends, low, high } or 0 end
            -- What a longer window holds may have been forgotten.
            if period > span then
              epoch = false
              if parts and gives then cost = 0 end
            end
            span = math.min(span, longest)
          end
          if gives and (not mark or mark + period > now) then back = cost end
          if known <= now and (#cells == 0 or cells[#cells - 1] + span <= now) then
            longest, shortest, round = period, period, 0
          end
        end
        local claim, arrived = r[FOURTH], waited and math.max(0, now - waited)
        if claim ~= 0 and claim[3] <= now then claim = 0 end
        local since, its, own = window and now - period or 0, 0, 0
        if back > 0 and mark then
          -- From the cell that holds it; what is not there any more from those before it, which leave first.
          for k = 1, #cells, 2 do
            if its == 0 and cells[k] >= mark then its, own = k, math.min(back, cells[k + 1]) end
          end
          back = back - own
        end
        for k = 1, #cells, 2 do
          local time, amount = cells[k], cells[k + 1]
          if time + span > now then
            if lands and time == mark and amount == cost then
              lands = false
              if renews then
                time = math.max(time, now + ttl)
                parts[4 + 3 * j] = time
              else
                amount = 0
              end
            elseif k == its then
              back, amount = 0, amount - own
            elseif back > 0 and time > since then
              local part = math.min(back, amount)
              back, amount = back - part, amount - part
            end
            if amount > 0 then
              live[last + 1], live[last + 2] = time, amount
              last = last + 2
              if time > since then sum = sum + amount end
            end
          end
        end
        if last == 0 then epoch = false end
        if gives then
          if renews and lands and cost > 0 then answer = 'gone' end
          cost = 0
        end
        allowed = cost == 0 or sum + cost <= max
        if not allowed then
          if cost <= max then
            -- What stays of a window is never more than its maximum: what is counted may be more than a double holds.
            local left = cost
            for k = last - 1, 1, -2 do
              if not window then
                if not retry or live[k] - now < retry then retry = live[k] - now end
              else
                left = left + live[k + 1]
                if left > max then
                  retry = live[k] + period - now
                  break
                end
              end
            end
          end
          -- Room is kept for the first that came of those who wait for nothing else.
          if not window and waited and waited >= PATIENCE and (claim == 0 or arrived < claim[1]
            or whose == claim[2] and arrived <= claim[1] + PATIENCE) then
            claim, turns = { arrived, whose, now + PATIENCE + far, cost }, true
          end
        elseif waited and claim ~= 0 and cost > 0 and whose ~= claim[2] and arrived > claim[1] + PATIENCE
          and sum + claim[4] + cost > max then
          allowed, retry = false, claim[3] - now
        else
          retry = 0
          if charges and cost > 0 then
            if waited and claim ~= 0 and whose == claim[2] then claim = 0 end
            local grain = window and floor((shortest + 31) / 32)
            if window and last > 0 and floor(live[last - 1] / grain) == floor(now / grain) then
              live[last - 1], live[last] = now, live[last] + cost
            else
              live[last + 1], live[last + 2] = window and now or now + ttl, cost
              last = last + 2
            end
            sum = sum + cost
            if window and last > MAX_CELL_NUMBERS then
              -- Those that the longest window alone counts are merged by its grain, and if that does not suffice, all are.
              local coarse = floor((longest + 31) / 32)
              local till, by = now - shortest, math.max(coarse - grain, 1)
              for pass = 1, 2 do
                local merged = 0
                for k = 1, last > MAX_CELL_NUMBERS and last or 0, 2 do
                  local time, amount = live[k], live[k + 1]
                  live[k], live[k + 1] = nil, nil
                  if merged > 0 and time <= till and floor(time / by) == floor(live[merged - 1] / by) then
                    amount, merged = math.min(live[merged] + amount, EXACT - 1), merged - 2
                  end
                  live[merged + 1], live[merged + 2] = time, amount
                  merged = merged + 2
                end
                if merged > 0 then last = merged end
                till, by = now, coarse
              end
              sum = 0
              for k = 1, last, 2 do
                if live[k] > since then sum = sum + live[k + 1] end
              end
            end
          end
        end
        remaining, reset = math.max(0, max - sum), 0
        if window then
          if last > 0 then reset = math.max(0, live[last - 1] + period - now) end
          lasts = 0
          if last > 0 then lasts = live[last - 1] + longest - now end
          if round ~= 0 then lasts = math.max(lasts, round[2] + round[4] - now) end
        else
          for k = 1, last, 2 do reset = math.max(reset, live[k] - now) end
          lasts, mark = reset, now + ttl
          if claim ~= 0 then lasts = math.max(lasts, claim[3] - now) end
        end
        r[NEXT_FIRST], r[NEXT_SECOND], r[NEXT_THIRD], r[NEXT_FOURTH] = live, longest or 0, round or 0, claim
