
      elseif kind == 'g' then
        local burst = tonumber(args[at + 4])
        max, cost = tonumber(max), tonumber(cost)
        local time, part = r[SECOND], r[THIRD]
        if part > 0 and r[FIRST] ~= max then time, part = time + 1, 0 end
        time = time - (now - r[LAST])
        if time < 0 then time, part = 0, 0 end
        local room, room_part = scale(burst, period, max)
        if time > room or time == room and part > room_part then time, part = room, room_part end
        if gives then
          local quotient, rest = scale(math.min(cost, burst), period, max)
          if mark then quotient = quotient - math.max(0, now - mark) end
          if quotient >= 0 then
            time, part = time - quotient, part - rest
            if part < 0 then time, part = time - 1, part + max end
            if time < 0 then time, part = 0, 0 end
          end
          cost = 0
        end
        if cost <= burst then
          local quotient, rest = scale(cost, period, max)
          quotient, rest = time + quotient, part + rest
          if rest >= max then quotient, rest = quotient + 1, rest - max end
          allowed = quotient < room or quotient == room and rest <= room_part
          if not allowed then
            retry = quotient - room
            if rest > room_part then retry = retry + 1 end
          else
            retry = 0
            if charges then time, part = quotient, rest end
          end
        end
        local quotient, rest = scale(room - time, max, period)
        remaining, reset = quotient + floor((rest + room_part - part) / period), time
        if part > 0 then reset = time + 1 end
        lasts = reset
        r[NEXT_FIRST], r[NEXT_SECOND], r[NEXT_THIRD] = max, time, part
