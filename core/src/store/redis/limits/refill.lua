
      -- GCRA is continuous refill with another most at once.
      if kind == 'c' or kind == 'g' then
        local most, taken = numbers[max], numbers[cost]
        if not most then
          most = tonumber(max)
          numbers[max] = most
        end
        if not taken then
          taken = tonumber(cost)
          numbers[cost] = taken
        end
        max, cost = most, taken
        local burst = kind == 'c' and max or tonumber(args[at + 4])
        local whole, part, elapsed, quotient, rest, counted, more = r[SECOND], r[THIRD], now - r[LAST], nil, nil, 0, 0
        if whole > 0 or part > 0 then
          -- The time until now counts by the rule by which it was written.
          turns = r[FOURTH] ~= max or r[FIRST] ~= period
          if elapsed > 0 then
            quotient, rest = scale(elapsed, r[FOURTH], r[FIRST])
            whole, part = whole - quotient, part - rest
            if part < 0 then whole, part = whole - 1, part + r[FIRST] end
            if whole < 0 then whole, part = 0, 0 end
          end
          if r[FIRST] ~= period then
            quotient, rest = scale(part, period, r[FIRST])
            part = rest > 0 and quotient + 1 or quotient
            if part == period then whole, part = whole + 1, 0 end
            epoch = false
            if parts and gives then mark, cost = nil, 0 end
          end
        end
        if whole == 0 and part == 0 then epoch = false end
        if epoch then
          -- What has been refilled in it.
          counted, more = r[FIFTH][1] + r[SECOND] - whole, r[FIFTH][2] + r[THIRD] - part
          if more < 0 then
            counted, more = counted - 1, more + period
          elseif more >= period then
            counted, more = counted + 1, more - period
          end
          if counted >= COUNTED then
            counted, more, epoch = 0, 0, false
            if parts and gives then mark, cost = nil, 0 end
          end
        end
        if gives then
          quotient, rest = 0, 0
          if mark then
            quotient, rest = counted - mark, more - string.sub(parts[6 + 3 * j], 34)
            if rest < 0 then quotient, rest = quotient - 1, rest + period end
          end
          if quotient < cost then
            whole, part = whole + quotient - cost, part + rest
            if part >= period then whole, part = whole + 1, part - period end
            if whole < 0 then whole, part = 0, 0 end
          end
          cost = 0
        end
        local up = part > 0 and whole + 1 or whole
        allowed = cost == 0 or up + cost <= burst
        if allowed then
          retry = 0
          if charges then whole, up = whole + cost, up + cost end
        elseif cost <= burst then
          retry = refilling(whole + cost - burst, part, period, max)
        end
        -- When it is as if never used is reckoned if it binds, or if a period is not as long as that.
        remaining = up < burst and burst - up or 0
        if whole == 0 and part == 0 then
          lasts = 0
        elseif burst == max and (whole < max or whole == max and part == 0) then
          lasts = period
        else
          reset = refilling(whole, part, period, max)
          lasts = reset
        end
        r[NEXT_FIRST], r[NEXT_SECOND], r[NEXT_THIRD], r[NEXT_FOURTH] = period, whole, part, max
        r[NEXT_FIFTH] = (epoch or charges and parts) and { counted, more } or 0
