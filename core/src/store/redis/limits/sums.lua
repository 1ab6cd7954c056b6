
      elseif kind == 'l' or kind == 'b' then
        -- Decimal texts: compared by length, then by text; reckoned fifteen digits at a time.
        local function less(a, b)
          if #a ~= #b then return #a < #b end
          return a < b
        end
        local function add(a, b, sign)
          if #a < 16 and #b < 16 then return format('%d', a + sign * b) end
          local sum, carry, a_end, b_end = '', 0, #a, #b
          while a_end > 0 or b_end > 0 or carry > 0 do
            if a_end > 0 then carry = carry + string.sub(a, math.max(1, a_end - 14), a_end) end
            if b_end > 0 then carry = carry + sign * string.sub(b, math.max(1, b_end - 14), b_end) end
            sum = format('%015d', carry % 1000000000000000) .. sum
            carry, a_end, b_end = floor(carry / 1000000000000000), a_end - 15, b_end - 15
          end
          sum = string.match(sum, '^0*(%d*)$')
          return sum == '' and '0' or sum
        end
        local ends, used = r[FIRST], r[SECOND]
        if kind == 'b' and now >= ends then
          local offset = tonumber(args[at + 4])
          ends, used = (floor((now - offset) / period) + 1) * period + offset, '0'
        end
        if used == '0' then epoch = false end
        if gives then
          used = less(cost, used) and add(used, cost, -1) or '0'
          cost = '0'
        end
        local sum = add(used, cost, 1)
        allowed = cost == '0' or not less(max, sum)
        if allowed then
          retry = 0
          if charges then used = sum end
        elseif kind == 'b' and not less(max, cost) then
          retry = ends - now
        end
        remaining = less(used, max) and add(max, used, -1) or '0'
        if used == '0' then reset = 0 elseif kind == 'b' then reset = ends - now end
        lasts = reset or false
        mark = 0
        r[NEXT_FIRST], r[NEXT_SECOND], r[NEXT_THIRD] = ends, used, 0

      else
        -- Nothing is remembered of it.
        if gives then cost = '0' end
        allowed = #cost < #max or #cost == #max and cost <= max
        remaining, retry, reset, lasts, mark = max, allowed and 0 or nil, 0, 0, 0
      end
