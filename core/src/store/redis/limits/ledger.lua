-- The machine of limits, second wording; the first is core/src/limits. Equal envelopes at equal times get equal
-- answers from both: change neither alone.
--
-- KEYS  1 lane, then records and reservations, each once
-- ARGV  schema, sequence | '-', not_after | '-', how many limits of money are charged, for each of them the place of its
--       key and what the client has seen of it (see core/src/limits/standing.rs) or '-', then the requests word by word:
--       take | peek | refund | reset, count, charges
--       reserve | renew | commit | keep | return, count, the reservation's key, ttl, charges (of keep: what stays charged)
--       wait: as reserve, of a caller that waits; behind the ttl for how long it has, how long an answer takes to reach it,
--       and its line: what it waits for, in 16 bits
--       again: as the one before it, which is none that has a reservation
--       where a charge is: key (0 if none), kind, max, period, burst or offset, cost
--
-- Spans of time, and amounts of what refills, stay below 2^50, so that seven of them make no number that a double cannot
-- hold, and times below 2^51 until 2041; products are taken in two pieces. Amounts of budgets are decimal text. An error is
-- raised before the first write only.
--
-- A lone take is what most envelopes are: all records are read by one command, what one kind needs stands in its own
-- branch, and no function is made that is not called. See also the pool's script.

local SCHEMA = '3'
local ENDED, EXACT, MAX_BACKLOG = 120000000, 9007199254740992, 1125899906842624
-- A record, as a list: its clock, what is used (by kind), the same as it would be if its request is allowed, how long it
-- is then needed, whether it is to be written, where its key stands, and the reservation that began its epoch, if there is
-- one. What is needed for ever lasts `false`, and what is written for its clock only `kept`: as long as before. TURNS says
-- that what is used is kept by another rule from now on, even if nothing is allowed.
local LAST, SHIFT, FIRST, SECOND, THIRD, FOURTH, FIFTH = 1, 2, 3, 4, 5, 6, 7
local NOW, NEXT_FIRST, NEXT_SECOND, NEXT_THIRD, NEXT_FOURTH, NEXT_FIFTH, NEXT_LASTS = 8, 9, 10, 11, 12, 13, 14
local LASTS, KIND, DIRTY, PLACE, EPOCH, NEXT_EPOCH, TURNS, ELSEWHERE = 15, 16, 17, 18, 19, 20, 21, 22
-- Of a budget only: the longest period that was said in the present one, its offset, and when the present one was told to be
-- over, where it is so sooner; and what would be used, and its version, if another limit refuses.
local SAID, SAID_OFFSET, NEXT_SAID, NEXT_SAID_OFFSET, FURTHEST, NEXT_FURTHEST = 23, 24, 25, 26, 27, 28
local ASKED, ASKED_VERSION = 29, 30
-- Of money: its clock, when the period ends, version, of a budget what is said above (0 of a lifetime), birth (none: 0), what is
-- used, the epoch (nothing if there is none), and the births before it as text.
local MONEY, BIRTHS, REMEMBERED = '<dddddddssss', 32, 90000000000
-- For so long what is in flight is waited for by who then claims room, and the claim holds for as long, and for so much longer
-- at most for who is far away.
local PATIENCE, FAR = 500000, 1500000
-- Of a rolling window, each with its time.
local MAX_CELL_NUMBERS = 256
-- More than that was never reserved: an epoch ends once it has refilled so much.
local COUNTED = 1125899906842624
local MOST = '115792089237316195423570985008687907853269984665640564039457584007913129639935'

local args, call, format, floor, ceil = ARGV, redis.call, string.format, math.floor, math.ceil
if args[1] ~= SCHEMA then
  return redis.error_reply('SCHEMA this server runs schema ' .. SCHEMA .. ' of leasehold limits')
end
local values = call('MGET', unpack(KEYS))
local clock = call('TIME')
local wall = clock[1] * 1000000 + clock[2]
local wall_told = format('%d', wall)

--@ server/less

local sequence, not_after, lane = args[2] ~= '-' and args[2] + 0, args[3] ~= '-' and args[3] + 0, values[1]
local LANE, MOMENT, MOMENT_TOLD = KEYS[1], wall, wall_told
--@ lane/recall
if not_after and wall > not_after then return 'stale ' .. wall_told end

-- floor(a * b / c), and what is left.
local function scale(a, b, c)
  local product = a * b
  if product < EXACT then
    local quotient = floor(product / c)
    return quotient, product - quotient * c
  end
  -- By the digits of b, of base 4.
  local whole, quotient, rest, unit = floor(a / c), 0, 0, 1
  a = a - whole * c
  while unit * 4 <= b do unit = unit * 4 end
  while unit >= 1 do
    rest = rest * 4 + a * (floor(b / unit) % 4)
    local digit = floor(rest / c)
    quotient, rest, unit = quotient * 4 + digit, rest - digit * c, unit / 4
  end
  return quotient + whole * b, rest
end
-- In how much time so much is refilled, rounded up; the longest that is told if it is longer.
local function refilling(whole, part, period, max)
  local quotient, rest = scale(whole, period, max)
  return math.min(quotient + ceil((rest + part) / max), MAX_BACKLOG)
end

local records, written, later, lines, line = {}, {}, nil, { 'done ' .. wall_told }, 1
-- What the charges of a request change, in one list for all requests, and the numbers that were read, by their texts.
local changed, changes, numbers = {}, 0, {}
local cursor, words, what, count, first = 5, #args, nil, nil, nil
-- What was seen of limits of money, until they are looked at. Only they need to know on what server this is.
local of_money, seen, server = tonumber(args[4]), nil, nil
if of_money > 0 then
  seen, cursor = {}, cursor + 2 * of_money
  for k = 5, cursor - 1, 2 do seen[args[k]] = args[k + 1] end
  -- Those who ask for a rate are not worth the look.
  --@ server/replication
  server = at and string.sub(replication, at + 14, at + 29) or ''
  if #server < 16 or string.find(server, '[^0-9a-f]') then
    server = string.lower(string.sub(string.match(server, '^%x*') .. '0000000000000000', 1, 16))
  end
end
while cursor <= words do
  local again = args[cursor] == 'again'
  if not again then what, count, first = args[cursor], tonumber(args[cursor + 1]), cursor + 2 end
  local charges, gives, ttl, held, parts, answer, stays = what == 'take', what == 'refund', 0, nil, nil, nil, false
  local whose, waited, far, barred, renews = nil, nil, nil, false, what == 'renew'
  if what == 'reserve' or what == 'wait' then
    charges, parts, held, ttl, first = true, {}, tonumber(args[first]), tonumber(args[first + 1]), first + 2
    if what == 'wait' then
      -- Who waits is told by its lane, and for what.
      whose, first = string.match(KEYS[1], ':(%x+):%d+$'), first + 3
      if whose then
        whose = tonumber(string.sub(whose, 4, 12), 16) * 65536 + args[first - 1]
        waited, far = tonumber(args[first - 3]), math.min(args[first - 2], FAR)
      end
    end
  elseif renews or what == 'commit' or what == 'keep' or what == 'return' then
    gives, held, ttl, first = true, tonumber(args[first]), tonumber(args[first + 1]), first + 2
    local packed, state, ends, size = values[held], nil, nil, nil
    if packed then state, ends, size = struct.unpack('<c1dd', packed) end
    if not packed or ends <= wall then
      answer = 'gone'
    elseif state ~= 'p' then
      answer = state == 'c' and 'before 0' or 'before 1'
    elseif size ~= count then
      answer = 'gone'
    else
      answer, parts = 'settled', { struct.unpack('<c1dd' .. string.rep('dss', count), packed) }
    end
  end
  cursor = again and cursor + 1 or first + 6 * count

  -- Which of the charges binds, and what its limit says.
  local binding, bound_allowed, bound_remaining, bound_printed, bound_retry, bound_reset
  changes = 0
  for j = 0, (answer and not parts) and -1 or count - 1 do
    local at = first + 6 * j
    local kind, max, period, cost, mark = args[at + 1], args[at + 2], numbers[args[at + 3]], args[at + 5], nil
    if not period then
      period = tonumber(args[at + 3])
      numbers[args[at + 3]] = period
    end
    if gives and parts then
      local kept = what == 'keep' and kind ~= 'f' and cost
      mark, cost = parts[4 + 3 * j], parts[5 + 3 * j]
      -- What is given back, of amounts that are no texts; of those only they know how to reckon.
      if kept and kind ~= 'b' and kind ~= 'l' and kind ~= 'e' then cost = format('%d', math.max(cost - kept, 0)) end
    end
    if not (renews or what == 'commit') or kind == 'f' then
      -- By the text of its key's place: to read a number costs more than to look up a text.
      local r = records[args[at]]
      local money = kind == 'b' or kind == 'l'
      if not r or what == 'reset' and not money then
        local a, b, c, d, e, f, g, epoch, place, h, i, l = wall, 0, 0, 0, 0, 0, 0, false, tonumber(args[at]), 0, 0, 0
        local value = (money or what ~= 'reset') and values[place]
        if kind == 'c' or kind == 'g' then
          if value then
            a, b, c, d, e, f = struct.unpack('<dddddd', value)
            -- Of an epoch, what has been refilled in it: the whole, and what is less.
            if #value > 48 then
              local whole, part = struct.unpack('<dd', string.sub(value, 49))
              epoch, g = string.sub(value, 65), { whole, part }
            end
          end
        elseif money then
          d, g = '0', ''
          if value then
            a, b, c, e, h, i, l, f, d, epoch, g = struct.unpack(MONEY, value)
            if epoch == '' then epoch = false end
          end
        elseif kind ~= 'e' then
          c = {}
          if value then
            -- The epoch stands behind the rest, after a blank.
            if #value % 8 > 0 then value, epoch = string.sub(value, 1, -34), string.sub(value, -32) end
            c = { struct.unpack('<' .. string.rep('d', #value / 8), value) }
            a, b = c[1], c[2]
            local behind = 3
            if kind == 'w' then
              -- The longest period; below zero if there are several: the shortest, and the round.
              d, behind = c[3], 4
              if d < 0 then d, e, behind = -d, { unpack(c, 4, 7) }, 8 end
            end
            if kind == 'f' then
              -- The claim of who waits.
              f, behind = { unpack(c, 3, 6) }, 7
            end
            c = { unpack(c, behind, #c - 1) }
          end
        end
        if r then
          r[LAST], r[SHIFT], r[FIRST], r[SECOND], r[THIRD], r[FOURTH], r[FIFTH], r[EPOCH] = a, b, c, d, e, f, g, epoch
        else
          r = { a, b, c, d, e, f, g, 0, 0, 0, 0, 0, 0, 0, 0, kind, false, place, epoch, false, false, false }
          records[args[at]] = r
          if kind == 'b' then r[SAID], r[SAID_OFFSET], r[FURTHEST] = h, i, l end
        end
      end
      -- Its time runs forward only; a clock that was set back goes on from where it was, at half its pace until that has caught up.
      -- That is kept also where nothing else is.
      local now = wall + r[SHIFT]
      if now < r[LAST] then
        now = r[LAST]
        r[SHIFT] = now - wall
        if not r[DIRTY] then
          r[DIRTY], r[LASTS], written[#written + 1] = true, 'kept', r
        end
      elseif r[SHIFT] > 0 then
        now = now - math.min(r[SHIFT], floor((now - r[LAST]) / 2))
      end
      local allowed, remaining, retry, reset, lasts, epoch, turns = false, nil, nil, nil, nil, r[EPOCH], false
      -- What was charged in another epoch is not among what is used.
      if parts and gives and string.sub(parts[6 + 3 * j], 1, 32) ~= epoch then
        if renews and cost ~= '0' then answer = 'gone' end
        mark, cost = nil, '0'
      end
