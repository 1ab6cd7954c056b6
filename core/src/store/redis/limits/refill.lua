
      if kind == 'c' then
        max, cost = tonumber(max), tonumber(cost)
        local whole, part, elapsed, quotient, rest = r[SECOND], r[THIRD], now - r[LAST], nil, nil
        if part > 0 and r[FIRST] ~= period then whole, part = whole + 1, 0 end
        if whole >= max then whole, part = max, 0 end
        if elapsed >= period then
          whole, part = 0, 0
        elseif elapsed > 0 then
          quotient, rest = scale(elapsed, max, period)
          whole, part = whole - quotient, part - rest
          if part < 0 then whole, part = whole - 1, part + period end
          if whole < 0 then whole, part = 0, 0 end
        end
        if gives then
          local since = mark and math.max(0, now - mark) or 0
          if since < period then
            quotient, rest = scale(since, max, period)
            if quotient < cost then
              whole, part = whole + quotient - cost, part + rest
              if part >= period then whole, part = whole + 1, part - period end
              if whole < 0 then whole, part = 0, 0 end
            end
          end
          cost = 0
        end
        local up = part > 0 and whole + 1 or whole
        allowed = up + cost <= max
        if allowed then
          retry = 0
          if charges then whole, up = whole + cost, up + cost end
        elseif cost <= max then
          quotient, rest = scale(whole + cost - max, period, max)
          retry = quotient + ceil((rest + part) / max)
        end
        -- When it is as if never used is reckoned if it binds.
        remaining, lasts = max - up, (whole > 0 or part > 0) and period or 0
        r[NEXT_FIRST], r[NEXT_SECOND], r[NEXT_THIRD] = period, whole, part
