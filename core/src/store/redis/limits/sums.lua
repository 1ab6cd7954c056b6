
      elseif money then
        -- Decimal texts, reckoned fifteen digits at a time.
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
        -- A birth is its time and its server: as old as its text says. They follow each other, from one period to the next too.
        local dawn = r[FOURTH] == 0 and wall or math.max(wall, string.sub(r[FOURTH], 1, 16) + 1)
        local function born_after(birth)
          return format('%016d', birth == 0 and dawn or math.max(dawn, string.sub(birth, 1, 16) + 1)) .. server
        end
        -- When the period of a calendar ends that it is then.
        local function ending(period, offset, at)
          return (floor((at - offset) / period) + 1) * period + offset
        end
        local ends, used, version, birth, past = r[FIRST], r[SECOND], r[THIRD], r[FOURTH], r[FIFTH]
        if birth == 0 then past = '' end
        -- By what calendars a budget is asked: see core/src/limits/budget.rs.
        local said, said_offset, furthest, known = r[SAID], r[SAID_OFFSET], r[FURTHEST], false
        local function over(ends)
          return said > 0 and ending(said, said_offset, ends - 1) or ends
        end
        if kind == 'b' then
          local offset, last = tonumber(args[at + 4]), over(ends)
          if now >= ends then ends = last end
          furthest = math.max(furthest, last)
          if now < ends then
            known = true
            if period > said or period == said and ending(period, offset, ends - 1) == ends then
              said, said_offset = period, offset
              ends = math.max(ends, ending(period, offset, now))
            end
            if ends > r[FIRST] and birth ~= 0 then version = version + 1 end
          else
            known = said > 0 and now < ending(said, said_offset, ends)
            if not known or said < period then said, said_offset = period, offset end
            ends, used, version, birth = ending(said, said_offset, now), '0', 0, 0
            -- When it began, or the last one was told to be over, where its birth does not tell.
            furthest = math.max(furthest, now)
            past, said, said_offset = dawn ~= furthest and format(' -%016d', furthest) or '', period, offset
          end
          if furthest <= over(ends) then furthest = 0 end
          turns = known and (ends ~= r[FIRST] or said ~= r[SAID] or said_offset ~= r[SAID_OFFSET])
        end
        -- How long it is needed. One of which everything was given back says so to those who have seen it used, and a budget what
        -- was said to the end of the next period, or for as long as anybody remembers that it was told to end later.
        local function lasting(ends, used, birth)
          if kind == 'l' then return birth == 0 and 0 or used == '0' and REMEMBERED end
          local told = math.min(math.max(furthest, ends) - wall, REMEMBERED)
          return birth == 0 and 0 or math.max(told, ending(said, said_offset, over(ends)) - now)
        end
        if used == '0' then epoch = false end
