
      elseif kind == 'w' or kind == 'f' then
        -- A rolling window's cells (their last time, what was taken), or what is in flight (until when, how much).
        max, cost = tonumber(max), tonumber(cost)
        local window = kind == 'w'
        local cells, live, last, sum, back, lands = r[FIRST], {}, 0, 0, 0, gives and not window and mark
        local span = window and period or 0
        if gives and window and (not mark or mark + period > now) then back = cost end
        for k = 1, #cells, 2 do
          local time, amount = cells[k], cells[k + 1]
          if time + span > now then
            if lands and time == mark and amount == cost then
              lands, amount = false, 0
            elseif back > 0 then
              local part = math.min(back, amount)
              back, amount = back - part, amount - part
            end
            if amount > 0 then
              live[last + 1], live[last + 2] = time, amount
              last, sum = last + 2, sum + amount
            end
          end
        end
        if last == 0 then epoch = false end
        if gives then cost = 0 end
        allowed = cost == 0 or sum + cost <= max
        if not allowed then
          if cost <= max then
            local left = 0
            for k = 1, last, 2 do
              left = left + live[k + 1]
              if not window then
                if not retry or live[k] - now < retry then retry = live[k] - now end
              elseif left >= sum + cost - max then
                retry = live[k] + period - now
                break
              end
            end
          end
        else
          retry = 0
          if charges and cost > 0 then
            local grain = window and floor((period + 31) / 32)
            if window and last > 0 and floor(live[last - 1] / grain) == floor(now / grain) then
              live[last - 1], live[last] = now, live[last] + cost
            else
              live[last + 1], live[last + 2] = window and now or now + ttl, cost
              last = last + 2
            end
            sum = sum + cost
          end
        end
        remaining, reset = math.max(0, max - sum), 0
        if window then
          if last > 0 then reset = live[last - 1] + period - now end
        else
          for k = 1, last, 2 do reset = math.max(reset, live[k] - now) end
          mark = now + ttl
        end
        lasts = reset
        r[NEXT_FIRST], r[NEXT_SECOND], r[NEXT_THIRD] = live, 0, 0
