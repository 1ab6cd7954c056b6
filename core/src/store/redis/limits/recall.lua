
        -- What was seen is taken in at the first look: whatever else becomes of the request, the record has it.
        local told = seen[args[at]]
        if told then
          seen[args[at]] = false
          local their_birth, their_version, their_ends, their_used, their_past = nil, nil, nil, nil, nil
          if told ~= '-' then
            their_birth, their_version, their_ends, their_used, their_past =
              string.match(told, '^(%S+) (%S+) (%S+) (%S+)(.*)$')
            their_version, their_ends = tonumber(their_version), tonumber(their_ends)
            -- Over, also where it was told to go on.
            local follows = birth == 0 or their_birth < (string.match(past, '^ %S+ (%S+)') or birth)
            local ended = math.max(now, follows and tonumber(string.match(past, '^ %-(%d+)')) or 0)
            if their_ends > 0 and their_ends <= ended then their_birth = nil end
          end
          local moved = birth ~= 0 and string.sub(birth, 17) ~= server
          local held = not their_birth or birth == their_birth and version >= their_version
            and (their_past == '' or their_past == past)
          if moved or not held then
            -- Texts that may be below zero.
            local function plus(a, b, minus)
              local a_negative, b_negative = string.sub(a, 1, 1) == '-', string.sub(b, 1, 1) == '-'
              if a_negative then a = string.sub(a, 2) end
              if b_negative then b = string.sub(b, 2) end
              if minus then b_negative = not b_negative end
              local sum
              if a_negative == b_negative then
                sum = add(a, b, 1)
                if less(MOST, sum) then sum = MOST end
              elseif less(a, b) then
                sum, a_negative = add(b, a, -1), b_negative
              else
                sum = add(a, b, -1)
              end
              return a_negative and sum ~= '0' and '-' .. sum or sum
            end
            -- All births, the present one last, each with its version and what was charged in it; what is older than is
            -- returned does not count.
            local function read(parts, birth, version, used, past)
              local since, others = string.match(past, '^ (%S+)(.*)$')
              for other, other_version, net in string.gmatch(others or '', ' (%S+) (%S+) (%S+)') do
                parts[#parts + 1] = { other, tonumber(other_version), net }
                used = plus(used, net, true)
              end
              parts[#parts + 1] = { birth, version, used }
              return since and string.sub(since, 1, 1) ~= '-' and since or ''
            end
            local parts, since, news, began = {}, '', nil, string.match(past, '^ %-(%d*)') or ''
            if birth ~= 0 then since = read(parts, birth, version, used, past) end
            if not held then
              local theirs = {}
              local their_since = read(theirs, their_birth, their_version, their_used, their_past)
              local their_began = string.match(their_past, '^ %-(%d*)')
              if their_began and their_began > began then began = their_began end
              if their_since > since then since, news = their_since, '' end
              for k = 1, #theirs do
                local part, known = theirs[k], nil
                for i = 1, #parts do
                  if parts[i][1] == part[1] then known = parts[i] end
                end
                if part[1] >= since and not (known and known[2] >= part[2]) then
                  if known then known[2], known[3] = part[2], part[3] else parts[#parts + 1] = part end
                  if not news or part[1] > news then news = part[1] end
                end
              end
              -- Of before a reset that does not count either.
              if (moved or news) and their_birth >= since then ends = math.max(ends, their_ends) end
            end
            if moved or news then
              -- A birth begins where what was seen is newer than what is kept, or of its birth: from now on is counted apart.
              local own = birth ~= 0 and birth or ''
              local fresh = moved or birth == 0 or own < since or news and news >= own
              local newest, sum, others = own, '0', {}
              for k = 1, #parts do
                local part = parts[k]
                if part[1] > newest then newest = part[1] end
                -- What is counted here since before a reset of which nobody here knew was charged after it all the same.
                local stays = part[1] == own and (not fresh or not moved and own < since)
                if stays or part[1] >= since then
                  sum = plus(sum, part[3])
                  if not stays then others[#others + 1] = part end
                end
              end
              used = string.sub(sum, 1, 1) == '-' and '0' or sum
              table.sort(others, function(a, b) return a[1] < b[1] end)
              while #others > BIRTHS do
                table.remove(others, 1)
                since = others[1][1]
              end
              past = since ~= '' and ' ' .. since or (#others > 0 or began ~= '') and ' -' .. began or ''
              for k = 1, #others do past = past .. format(' %s %d %s', others[k][1], others[k][2], others[k][3]) end
              version = fresh and 1 or version + 1
              if fresh then birth = born_after(newest ~= '' and newest or 0) end
              if used == '0' then epoch = false end
              r[LAST], r[SHIFT], r[FIRST], r[SECOND], r[THIRD] = now, now - wall, ends, used, version
              r[FOURTH], r[FIFTH], r[EPOCH], r[LASTS] = birth, past, epoch, lasting(ends, used, birth)
              if kind == 'b' then r[SAID], r[SAID_OFFSET], r[FURTHEST] = said, said_offset, furthest end
              if not r[DIRTY] then r[DIRTY], written[#written + 1] = true, r end
            end
          end
          -- A birth that a reset has begun since has forgotten nothing. Who has seen nothing, or a period that is over, may be of
          -- before any loss.
          if their_birth then
            r[ELSEWHERE] = their_birth ~= birth and (string.sub(past, 2, 33) ~= birth or their_birth > birth)
          else
            r[ELSEWHERE] = told ~= '-' or string.find(past, '^ %S+ ')
          end
        end
