
      elseif money then
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
        -- A birth is its time and its server: as old as its text says.
        local function born_after(birth)
          return format('%016d', birth == 0 and wall or math.max(wall, string.sub(birth, 1, 16) + 1)) .. server
        end
        -- How long it is needed. One of which everything was given back says so to those who have seen it used.
        local function lasting(ends, used, birth)
          if birth == 0 then return 0 end
          if kind == 'l' then return used == '0' and REMEMBERED end
          return used == '0' and math.min(ends - now, REMEMBERED) or ends - now
        end
        local ends, used, version, birth, past = r[FIRST], r[SECOND], r[THIRD], r[FOURTH], r[FIFTH]
        if kind == 'b' and now >= ends then
          local offset = tonumber(args[at + 4])
          ends, used = (floor((now - offset) / period) + 1) * period + offset, '0'
          version, birth, past = 0, 0, ''
        end
        if birth == 0 then past = '' end
        if used == '0' then epoch = false end
