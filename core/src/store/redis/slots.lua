-- The machine of slots, second wording; the first is core/src/slots. Equal envelopes at equal moments get
-- equal answers from both: change neither alone.
--
-- KEYS  1 meta, 2 slots, 3 places, 4 line, 5 tickets, 6 lane
-- ARGV  schema, channel, sequence | '-', not_after | '-', seen, jumped, seed, then the requests word by word
--
-- Numbers that are nonces stay text: a Lua number is a double. Times (microseconds) and fences stay below
-- 2^53, where doubles are exact. An error is raised before the first write only.
--
-- A server runs one command at a time, so that what this costs is what all clients have together. A record is read
-- and written once an envelope, packed. Every call makes all functions anew, and each of them searches for the variables
-- that it takes from around it: what is seldom asked for stands in one function for all, and what is often done is
-- not cut into many.

local SCHEMA = '3'
local SWEEP, INTEREST, LANE_GRACE, TICKET_LIFE, OFFER = '128', 30000000, 60000000, 10000000, 1000000
local DOUBT, QUEUE = 8, 281474976710656 -- the queue of slots in doubt; the scores of one queue (2^48)
-- Behind the queues stand the slots that are leased, offered or cool down, by when they come due, and then the
-- tickets, by when they lapse.
local WHEN_DUE, WHEN_LAPSED = 9 * QUEUE, 20 * QUEUE
local MAX_SLOTS, MAX_TICKETS, DRAWS, CHUNK = 1000000, 100000, 32, 1000 -- Lua unpacks some 8000 values at most
local POOL, SLOT = '<sdddddddddddddds', '<c1c1c1dddddddddss' -- see struct.pack

local META, SLOTS, PLACES, LINE, TICKETS, LANE = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local ARGV, call, format, match, floor, max, min = ARGV, redis.call, string.format, string.match, math.floor, math.max,
  math.min
local pack, unpack_all, concat = struct.pack, struct.unpack, table.concat

if ARGV[1] ~= SCHEMA then
  return redis.error_reply('SCHEMA this server runs schema ' .. SCHEMA .. ' of leasehold')
end
local channel, sequence, not_after = ARGV[2], ARGV[3], ARGV[4]
local seen, jumped, seed = tonumber(ARGV[5]), ARGV[6] == '1', tonumber(ARGV[7])
local cursor, words = 7, #ARGV

-- The pool's own record.
local defined, last, shift, incarnation, epoch, lost_at = false, 0, 0, '-', 0, 0
local longest, doubt_rest, top, waiters_until, arrived, certain, doubtful, heaviest = 0, 0, 0, 0, 0, 0, 0, 0
local tickets, namers = 0, 0 -- all tickets, and those in the lines of names
local meta = call('GET', META)
if meta then
  local schema = match(meta, '^%w*')
  if schema ~= SCHEMA then
    return redis.error_reply('SCHEMA this pool has schema ' .. schema .. ' of leasehold')
  end
  defined = true
  schema, last, shift, epoch, lost_at, longest, doubt_rest, top, waiters_until, arrived, certain, doubtful, heaviest,
    tickets, namers, incarnation = unpack_all(POOL, meta)
end

-- Store time runs forward only; a clock that was set back goes on from where it was, at its own pace.
local clock = call('TIME')
local wall = clock[1] * 1000000 + clock[2]
local now = max(wall + shift, last)

-- An envelope that came before is answered again; one that comes too late changes nothing.
if sequence ~= '-' then
  local before, keep_until = match(call('GETRANGE', LANE, '0', '40'), '^(%d+) (%d+)\n')
  if before and tonumber(keep_until) > now then
    if tonumber(before) == tonumber(sequence) then return match(call('GET', LANE), '\n(.*)$') end
    if tonumber(before) > tonumber(sequence) then return format('stale %d', now) end
  end
end
if not_after ~= '-' and now > tonumber(not_after) then return format('stale %d', now) end
if not defined and ARGV[cursor + 1] ~= 'define' then return format('done %d 0 0\nundefined', now) end

shift = now - wall
last = now
local freed, called, touched = 0, {}, {} -- touched: names that came free, or whose line moved up

-- The records that this envelope has read, and those of them to be written when it ends.
local records, changed, changes = {}, {}, 0
local function unfold(id, packed)
  if not packed then return nil end
  local mode, state, kind, weight, mark, fence, since, ends, hold, rest, barred, raised, holder, nonce =
    unpack_all(SLOT, packed)
  local s = { id = id, mode = mode, state = state, kind = kind, weight = weight, epoch = mark, fence = fence,
    since = since, ends = ends, hold = hold, rest = rest, barred = barred, raised = raised, holder = holder,
    floor = nonce, changed = false }
  records[id] = s
  return s
end
local function load(id)
  return records[id] or unfold(id, call('HGET', SLOTS, id))
end
local function save(s)
  if s.changed then return end
  s.changed = true
  changes = changes + 1
  changed[changes] = s
end
local function write(command, key, values)
  for i = 1, #values, CHUNK do call(command, key, unpack(values, i, min(i + CHUNK - 1, #values))) end
end
local function flush()
  local written, at = {}, 0
  for i = 1, changes do
    local s = changed[i]
    s.changed = false
    if s.mode ~= 'r' or s.state == 'l' then
      at = at + 2
      written[at - 1] = s.id
      written[at] = pack(SLOT, s.mode, s.state, s.kind, s.weight, s.epoch, s.fence, s.since, s.ends, s.hold, s.rest,
        s.barred, s.raised, s.holder, s.floor)
    end
  end
  changes = 0
  write('HSET', SLOTS, written)
end
local function total()
  flush()
  return call('HLEN', SLOTS)
end

-- The order of places: the queues by arrival, then what comes due. The server is told of moves when something asks
-- for the order, or at the end. Ranks that claims take are reckoned with here, so that a row of claims is one write.
local moves, moved, taken, ranked, unranked = {}, 0, {}, nil, false
local function move(s, place)
  moved = moved + 2
  moves[moved - 1], moves[moved] = place, s.id
end
local function arrange()
  if moved == 0 then return end
  write('ZADD', PLACES, moves)
  moves, moved, taken, ranked, unranked = {}, 0, {}, nil, false
end
local function take(rank)
  if unranked then arrange() end
  local i, before = 1, taken[1]
  while before and before <= rank do
    rank, i = rank + 1, i + 1
    before = taken[i]
  end
  table.insert(taken, i, rank)
  rank = format('%d', rank)
  ranked = call('ZRANGE', PLACES, rank, rank)[1]
  return ranked
end

-- Where a slot goes that is leased no more since `ended`: into a queue, to what comes due, or out. One that was made
-- for its lease (mode p) passes.
local function forget(s)
  if namers > 0 then touched[#touched + 1] = s.id end
  arrange()
  call('HDEL', SLOTS, s.id)
  call('ZREM', PLACES, s.id)
  records[s.id] = nil
  s.mode, s.state = 'r', 'o'
end
local function make_ready(s)
  if s.mode == 'p' then return forget(s) end
  if namers > 0 then touched[#touched + 1] = s.id end
  local queue = 0
  if s.kind == 'd' then
    queue = DOUBT
    doubtful = doubtful + 1
  else
    local weight = s.weight
    while weight >= 2 do
      queue, weight = queue + 1, weight / 2
    end
    certain = certain + 1
    if queue > heaviest then heaviest = queue end
  end
  s.state = 'r'
  move(s, format('%d', queue * QUEUE + arrived))
  unranked = true
  arrived = arrived + 1
  freed = freed + 1
end
local function settle(s, ended)
  save(s)
  if s.mode == 'r' then return forget(s) end
  if s.mode == 'd' or s.mode == 'x' then
    s.mode, s.state = 'x', 'o'
    arrange()
    -- The record first: a place that it does not agree with is found, and a slot without one is not.
    flush()
    call('ZREM', PLACES, s.id)
    return
  end
  if s.kind == 'd' then s.rest = max(s.rest, ended + doubt_rest) end
  local ends = max(s.rest, s.barred)
  if ends <= now then return make_ready(s) end
  s.state, s.ends = 'c', ends
  move(s, format('%d', WHEN_DUE + ends))
end
local function leave_queue(s)
  if s.state ~= 'r' then return end
  if s.id ~= ranked then unranked = true end
  if s.kind == 'd' then doubtful = doubtful - 1 else certain = certain - 1 end
end

-- Randomness that the machine repeats: products below 2^53.
local function draw()
  local value = seed
  seed = (seed * 1664525 + 1013904223) % 4294967296
  return value
end

-- The oldest slot, or one by weight, where weights differ: each queue is asked for.
local function choose(strategy)
  arrange()
  local function range_of(queue)
    return format('%d', queue * QUEUE), format('(%d', (queue + 1) * QUEUE)
  end
  if strategy == 'recent' then
    local oldest, arrival
    for queue = 0, heaviest do
      local low, high = range_of(queue)
      local head = call('ZRANGEBYSCORE', PLACES, low, high, 'WITHSCORES', 'LIMIT', '0', '1')
      local came = head[1] and tonumber(head[2]) - queue * QUEUE
      if came and (not arrival or came < arrival) then oldest, arrival = head[1], came end
    end
    return oldest
  end
  local counts, total, id = {}, 0, nil
  for queue = 0, heaviest do
    counts[queue] = call('ZCOUNT', PLACES, range_of(queue))
    total = total + counts[queue] * (2 ^ (queue + 1) - 1)
  end
  if total == 0 then return nil end
  for _ = 1, DRAWS do
    local point, queue, rank = floor(floor(draw() / 256) * total / 16777216), 0, 0
    while point >= counts[queue] * (2 ^ (queue + 1) - 1) do
      point = point - counts[queue] * (2 ^ (queue + 1) - 1)
      rank = rank + counts[queue]
      queue = queue + 1
    end
    rank = rank + floor(draw() * counts[queue] / 4294967296)
    id = call('ZRANGE', PLACES, rank, rank)[1]
    local accepted = floor(draw() * (2 ^ (queue + 1) - 1) / 4294967296)
    if heaviest == 0 then break end
    local s = load(id)
    if not s or accepted < s.weight then break end
  end
  return id
end

local function pick(strategy)
  if certain == 0 then return take(0) end
  if strategy == 'random' then return take(floor(draw() * certain / 4294967296)) end
  if strategy == 'recent' and heaviest == 0 then return take(0) end
  return choose(strategy)
end

-- What the last claim of any slot asked for: those that follow may ask for the same.
local ttl, max_hold, wait, priority, ageing, waited, strategy, least, most

local function grant(line, s, holder)
  leave_queue(s)
  if s.epoch ~= epoch then
    if s.kind ~= 'u' then s.kind = 'd' end
    s.epoch = epoch
  end
  top = max(now, top + 1)
  local ends = now + ttl
  if max_hold == 0 then
    s.hold = 0
  else
    s.hold = now + max_hold
    ends = min(ends, s.hold)
  end
  s.state, s.fence, s.holder, s.since, s.ends = 'l', top, holder, now, ends
  move(s, format('%d', WHEN_DUE + ends))
  save(s)
  return format('%s %s %d %d %s %s', line, s.id, top, ends, s.kind, s.floor)
end
local line
-- Who is refused waits in the lines of these names, in that of any slot if there are none, or without a ticket.
local function refuse(why, earliest, holder, names)
  if wait then
    if names and why == 'exhausted' then line('enter')(holder, names) else waiters_until = now + INTEREST end
  end
  return 'refused ' .. why .. (earliest and format(' %d', earliest) or ' -')
end
local function quiet_until()
  return lost_at == 0 and 0 or lost_at + longest + doubt_rest
end
-- A script that dies between two writes, because a right was taken away, leaves a slot elsewhere than its record says,
-- and counts that are out of date: all are counted anew, and the slot is put right as it is found.
local function count_ready()
  arrange()
  certain = call('ZCOUNT', PLACES, '-inf', format('(%d', DOUBT * QUEUE))
  doubtful = call('ZCOUNT', PLACES, format('%d', DOUBT * QUEUE), format('(%d', WHEN_DUE))
end
local function mend(id, s)
  arrange()
  if s and (s.state == 'l' or s.state == 'h' or s.state == 'c') then
    call('ZADD', PLACES, format('%d', WHEN_DUE + s.ends), id)
  elseif id then
    call('ZREM', PLACES, id)
  end
  count_ready()
  -- Nothing was moved, perhaps, and ranks have changed all the same; nor is it sure how heavy slots are.
  taken, ranked, heaviest = {}, nil, DOUBT - 1
end
local claim
function claim(holder)
  if lost_at ~= 0 and quiet_until() > now then return refuse('quiet', quiet_until()) end
  local offered = tickets > 0 and line('accept')(holder)
  if offered then return offered end
  if certain + doubtful < least then
    arrange()
    if call('ZCOUNT', PLACES, '-inf', format('(%d', WHEN_DUE)) ~= certain + doubtful then count_ready() end
  end
  local ready = certain + doubtful
  if ready < least or tickets > 0 and line('precedes')('%', holder) then
    arrange()
    local due = call('ZRANGEBYSCORE', PLACES, format('%d', WHEN_DUE), format('(%d', WHEN_LAPSED), 'WITHSCORES', 'LIMIT',
      '0', '1')[2]
    return refuse(total() == 0 and 'noslot' or 'exhausted', due and tonumber(due) - WHEN_DUE, holder, {})
  end
  local said, lines, given = 'granted 1', nil, nil
  if most > 1 and ready > 1 then said, lines, given = 'granted ' .. min(most, ready), {}, {} end
  for i = 1, min(most, ready) do
    local id = pick(strategy)
    local s = id and load(id)
    if not s or s.state ~= 'r' then
      mend(id, s)
      -- Nobody hears of what was granted before.
      for at = 1, i - 1 do make_ready(given[at]) end
      return claim(holder)
    end
    said = grant(said, s, holder)
    if lines then lines[i], given[i], said = said, s, '' end
  end
  if tickets > 0 then line('leave')(holder) end
  return lines and concat(lines) or said
end

local function grant_all(found, holder)
  local lines = { 'granted ' .. #found }
  for i = 1, #found do lines[i + 1] = grant('', found[i], holder) end
  return concat(lines)
end
local function blank(id, mode, weight)
  local s = { id = id, mode = mode, state = 'o', weight = weight, epoch = 0, fence = 0, holder = '0', since = 0,
    ends = 0, hold = 0, rest = 0, barred = 0, kind = 'u', floor = '-', raised = 0 }
  records[id] = s
  return s
end

-- Who waits, and in what order: a line of tickets for any slot (%), one for each name. The functions are made when
-- somebody waits.
local queue
function line(name)
if queue then return queue[name] end
queue = {}

-- A ticket is kept as text: when it lapses, its turn, how many slots it wants and how they are chosen, whether it has
-- an offer, and the names that it waits for or the slots that are offered to it.
local cards = {}
local function find(holder)
  local card = cards[holder]
  if card ~= nil then return card end
  local text = call('HGET', TICKETS, holder)
  if text then
    local ends, turn, count, how, offered, rest = match(text, '^(%d+) (%d+) (%d+) (%a+) (%d)(.*)$')
    card = { ends = tonumber(ends), turn = turn, count = tonumber(count), how = how, offered = offered == '1', ids = {} }
    for id in string.gmatch(rest, '%S+') do card.ids[#card.ids + 1] = id end
  end
  cards[holder] = card or false
  return card
end
local function keep(holder, card)
  cards[holder] = card
  call('HSET', TICKETS, holder, format('%d %s %d %s %d ', card.ends, card.turn, card.count, card.how,
    card.offered and 1 or 0) .. concat(card.ids, ' '))
end
local function lines_of(ids)
  return ids[1] and ids or { '%' }
end
local function stand_aside(holder, card)
  for _, id in ipairs(lines_of(card.ids)) do call('ZREM', LINE, id .. ' ' .. card.turn .. holder) end
  call('ZREM', PLACES, '%' .. holder)
  if card.ids[1] then namers = namers - 1 end
end
local function drop(holder)
  call('HDEL', TICKETS, holder)
  cards[holder] = false
  tickets = tickets - 1
end
local function leave(holder)
  local card = find(holder)
  if not card then return nil end
  drop(holder)
  if not card.offered then
    stand_aside(holder, card)
    for _, id in ipairs(card.ids) do touched[#touched + 1] = id end
  end
  return card
end
queue.leave = leave

-- Tickets of a pool that nobody asks for long expire uncounted, and so are those that a script made that died.
local function recount()
  tickets = call('HLEN', TICKETS)
  namers = min(namers, tickets)
end
function queue.pass(holder)
  if not leave(holder) then recount() end
end

-- The first of a line; one whose time has passed is dropped.
local function head(name)
  while true do
    local first = call('ZRANGEBYLEX', LINE, '[' .. name .. ' ', '(' .. name .. '!', 'LIMIT', '0', '1')[1]
    if not first then return nil end
    local holder = string.sub(first, -32)
    local card = find(holder)
    if card and card.ends > now then return holder, card end
    if not leave(holder) then call('ZREM', LINE, first) end
  end
end

-- Who grows older goes before those of higher priority who came so much later.
local function next_turn()
  local rank, arrival = 32767, max(now - waited, 0)
  if ageing == 0 then
    rank = rank - priority
  else
    arrival = min(max(arrival - priority * ageing, 0), 9007199254740992)
  end
  return format('%05d%016d', rank, arrival)
end
function queue.precedes(name, holder)
  local own = find(holder)
  local turn = own and own.ends > now and own.turn or next_turn()
  local first, card = head(name)
  return first and card.turn .. first < turn .. holder
end
function queue.enter(holder, names)
  local card = find(holder)
  local ends = now + TICKET_LIFE
  local lapses = format('%d', WHEN_LAPSED + ends)
  if card and card.ends > now then
    card.ends = ends
    keep(holder, card)
    call('ZADD', PLACES, lapses, '%' .. holder)
  else
    leave(holder)
    if tickets == 0 then
      namers = MAX_TICKETS
      recount()
    end
    if tickets >= MAX_TICKETS then return end
    local turn = next_turn()
    local any = not names[1]
    keep(holder, { ends = ends, turn = turn, count = any and least or 0, how = any and strategy or 'random',
      offered = false, ids = names })
    for _, id in ipairs(lines_of(names)) do call('ZADD', LINE, '0', id .. ' ' .. turn .. holder) end
    call('ZADD', PLACES, lapses, '%' .. holder)
    tickets = tickets + 1
    if not any then namers = namers + 1 end
  end
  local keep_for = format('%d', (TICKET_LIFE + LANE_GRACE) / 1000)
  call('PEXPIRE', LINE, keep_for)
  call('PEXPIRE', TICKETS, keep_for)
end

local function is_offered(s, holder)
  return s and s.state == 'h' and s.holder == holder
end
local function take_back(holder, ids)
  for _, id in ipairs(ids) do
    local s = load(id)
    if is_offered(s, holder) then
      make_ready(s)
      save(s)
    end
  end
end
function queue.accept(holder)
  local card = find(holder)
  if not card or not card.offered then return nil end
  drop(holder)
  local found = {}
  for _, id in ipairs(card.ids) do
    local s = load(id)
    if is_offered(s, holder) and s.ends > now then found[#found + 1] = s end
  end
  if #found == #card.ids then return grant_all(found, holder) end
  take_back(holder, card.ids)
  return nil
end
function queue.withdraw(holder)
  local card = leave(holder)
  if card and card.offered then take_back(holder, card.ids) end
  return 'withdrawn'
end
function queue.sweep()
  local lapsed = call('ZRANGEBYSCORE', PLACES, format('%d', WHEN_LAPSED), format('%d', WHEN_LAPSED + now), 'LIMIT', '0',
    SWEEP)
  for i = 1, #lapsed do
    if not leave(string.sub(lapsed[i], 2)) then
      call('ZREM', PLACES, lapsed[i])
      recount()
    end
  end
end
function queue.clear()
  call('DEL', LINE, TICKETS)
  call('ZREMRANGEBYSCORE', PLACES, format('%d', WHEN_LAPSED), '+inf')
  cards, tickets, namers = {}, 0, 0
end

-- What is ready is offered to the first in line.
local function keep_for(holder, s)
  leave_queue(s)
  s.state, s.holder, s.ends = 'h', holder, now + OFFER
  move(s, format('%d', WHEN_DUE + s.ends))
  save(s)
end
local function offer(holder, card, slots)
  stand_aside(holder, card)
  local ids = {}
  for i = 1, #slots do ids[i] = slots[i].id end
  card.offered, card.ids = true, ids
  keep(holder, card)
  called[#called + 1] = holder
end
local function serve_name(name)
  local holder, card = head(name)
  if not holder then return end
  for _, id in ipairs(card.ids) do
    if head(id) ~= holder then return end
  end
  local slots, ids = {}, card.ids
  for i = 1, #ids do
    slots[i] = load(ids[i]) or false
    if slots[i] and slots[i].state ~= 'r' then return end
  end
  if total() + #ids > MAX_SLOTS then return end
  for i = 1, #ids do
    slots[i] = slots[i] or blank(ids[i], 'p', 1)
    keep_for(holder, slots[i])
  end
  offer(holder, card, slots)
end
function queue.serve()
  local at = 1
  while touched[at] do
    serve_name(touched[at])
    at = at + 1
  end
  while certain + doubtful > 0 do
    local holder, card = head('%')
    if not holder or certain + doubtful < card.count then return end
    local slots = {}
    for i = 1, card.count do
      local id = pick(card.how)
      local s = id and load(id)
      if not s or s.state ~= 'r' then
        mend(id, s)
        for at = 1, i - 1 do make_ready(slots[at]) end
        slots = nil
        break
      end
      keep_for(holder, s)
      slots[i] = s
    end
    if slots then offer(holder, card, slots) end
  end
end

return queue[name]
end

-- The slot of a live lease, or why it is not held.
local function held(id, fence)
  local s = load(id)
  if not s then return nil, 'lost gone' end
  local current = s.fence
  if current > fence then return nil, 'lost taken' end
  if current < fence then return nil, 'lost forgotten' end
  if s.state ~= 'l' then return nil, 'lost ended' end
  if s.ends <= now then return nil, 'lost expired' end
  return s
end

-- Nonces, as decimal text: by length, then by text.
local function less(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end
local function release(id, fence, cooldown, outcome, value)
  local s, loss = held(id, fence)
  if not s then return loss end
  local kind, after = s.kind, s.floor
  if outcome == 'used' then
    if kind == 'k' and not less(after, value) or after ~= '-' and less(value, after) then
      return 'backwards ' .. kind .. ' ' .. after
    end
    kind, after = 'k', value
  elseif outcome == 'unsettled' then
    if kind ~= 'u' then kind = 'd' end
  elseif outcome == 'rejected' and value ~= '-' and (after == '-' or not less(value, after)) then
    kind, after = 'k', value
  elseif outcome ~= 'unused' then
    kind = 'd'
  end
  if after ~= s.floor then s.raised = now end
  s.kind, s.floor = kind, after
  s.rest = max(s.rest, now + cooldown)
  settle(s, now)
  return 'released'
end

local function word()
  cursor = cursor + 1
  return ARGV[cursor]
end
local function number()
  return tonumber(word())
end

-- What is seldom asked for.
local function seldom(name)

local perform = {}

function perform.these(holder)
  local count, ids, found, earliest, missing = number(), {}, {}, nil, false
  for i = 1, count do ids[i] = word() end
  if quiet_until() > now then return refuse('quiet', quiet_until()) end
  local offered = tickets > 0 and line('accept')(holder)
  if offered then return offered end
  for i = 1, count do
    local s = load(ids[i])
    if not s then
      missing = true
    elseif s.state == 'r' then
      if #found < most and not found[s.id] then
        found[#found + 1] = s
        found[s.id] = true
      end
    elseif s.state ~= 'o' then
      earliest = min(earliest or s.ends, s.ends)
    end
  end
  if missing then return refuse('noslot') end
  if #found < least then return refuse('exhausted', earliest) end
  if tickets > 0 then line('leave')(holder) end
  return grant_all(found, holder)
end

function perform.named(holder)
  local ids, found, new, free = {}, {}, 0, true
  for _ = 1, number() do
    local id = word()
    if not found[id] then
      found[id] = true
      ids[#ids + 1] = id
    end
  end
  if quiet_until() > now then return refuse('quiet', quiet_until()) end
  local offered = tickets > 0 and line('accept')(holder)
  if offered then return offered end
  for i = 1, #ids do
    local s = load(ids[i])
    if not s then new = new + 1 end
    free = (not s or s.state == 'r') and not (tickets > 0 and line('precedes')(ids[i], holder))
    if not free then break end
  end
  if not free or new > 0 and total() + new > MAX_SLOTS then
    local earliest
    for i = 1, #ids do
      local s = load(ids[i])
      if s and s.state ~= 'r' and s.state ~= 'o' then earliest = min(earliest or s.ends, s.ends) end
    end
    return refuse('exhausted', earliest, holder, ids)
  end
  if tickets > 0 then line('leave')(holder) end
  for i = 1, #ids do found[i] = load(ids[i]) or blank(ids[i], 'p', 1) end
  return grant_all(found, holder)
end

function perform.withdraw()
  local holder = word()
  return tickets > 0 and line('withdraw')(holder) or 'withdrawn'
end

function perform.renew()
  local s, loss = held(word(), number())
  local ttl = number()
  longest = max(longest, ttl)
  if not s then return loss end
  local limit, ends = s.hold, now + ttl
  if limit ~= 0 then ends = min(limit, ends) end
  if s.mode ~= 'x' and ends > s.ends then
    s.ends = ends
    move(s, format('%d', WHEN_DUE + ends))
    save(s)
  end
  return format('renewed %d', s.ends)
end

function perform.resync()
  local s, loss = held(word(), number())
  local chain, rewind, settles = word(), word() == '1', number()
  if not s then return loss end
  if s.floor ~= '-' and less(chain, s.floor) and not rewind then
    local ends = s.raised + settles
    if ends > now then return format('behind %s %d', s.floor, ends) end
  end
  if chain ~= s.floor then s.raised = now end
  s.kind, s.floor = 'k', chain
  save(s)
  return 'resynced ' .. chain
end

local function add(id, weight)
  local s = load(id)
  if not s then
    s = blank(id, 'e', weight)
    make_ready(s)
    return save(s)
  end
  local moves = s.state == 'r' and s.weight ~= weight
  if moves then leave_queue(s) end
  s.weight = weight
  if s.mode == 'r' or s.mode == 'p' then s.mode = 'e' end
  if moves then make_ready(s) end
  save(s)
end

function perform.define()
  local wanted, rest, count = number(), number(), number()
  local first = cursor
  cursor = cursor + 2 * count
  local before, new = total(), 0
  for i = 1, count do
    if call('HEXISTS', SLOTS, ARGV[first + 2 * i - 1]) == 0 then new = new + 1 end
  end
  if before + new > MAX_SLOTS then return 'full' end
  if not defined then
    -- A pool that is not there was never there, or was lost: lost if a client has seen a fence of it, and
    -- perhaps if the server started less than one quiet time ago.
    -- The server counts from the whole second in which it started: it started before that second's end.
    local uptime = tonumber(match(call('INFO', 'server'), 'uptime_in_seconds:(%d+)')) or 0
    local up_since = min(wall, (clock[1] - uptime + 1) * 1000000)
    if seen > 0 then lost_at = now elseif up_since + wanted + rest > now then lost_at = up_since end
    epoch, top, defined = now, seen, true
  end
  longest, doubt_rest = max(longest, wanted), max(doubt_rest, rest)
  for i = 1, count do add(ARGV[first + 2 * i - 1], tonumber(ARGV[first + 2 * i])) end
  -- A slot that has its place and no record is made again; one that has no place would never be found.
  arrange()
  local all = total()
  return format('defined %d %d', all - before, all)
end

function perform.change()
  local id, change, amount = word(), word(), number()
  local s = load(id)
  if not s then return 'noslot' end
  local leased = s.state == 'l'
  local stays = leased and change ~= 'break'
  if not stays then leave_queue(s) end
  if change == 'enable' then
    s.mode, s.barred = 'e', 0
  elseif change == 'disable' then
    s.mode = 'x'
  elseif change == 'drain' then
    s.mode = 'd'
  elseif change == 'remove' then
    s.mode = 'r'
  elseif change == 'quarantine' then
    s.barred = max(s.barred, now + amount)
    s.epoch = 0
    if not leased and s.kind ~= 'u' then s.kind = 'd' end
  elseif leased and s.kind ~= 'u' then
    s.kind = 'd'
  end
  if stays then save(s) else settle(s, now) end
  return 'changed'
end

function perform.inspect()
  local count, views, found = number(), {}, 0
  for _ = 1, count do
    local s = load(word())
    if s then
      found = found + 1
      views[found] = format(' %s %s %s %d %d %s %d %d %s %s', s.id, s.mode, s.state, s.weight, s.fence, s.holder,
        s.since, s.ends, s.kind, s.floor)
    end
  end
  count_ready()
  return format('inspected %d %d %d %d %d %d', total(), certain + doubtful, doubtful,
    call('ZCOUNT', PLACES, format('%d', WHEN_DUE), format('(%d', WHEN_LAPSED)), quiet_until(), found) .. concat(views)
end

function perform.list()
  flush()
  local ids = call('HKEYS', SLOTS)
  return 'listed ' .. #ids .. (#ids > 0 and ' ' or '') .. concat(ids, ' ')
end

return perform[name]
end

-- What the records of all requests need of the server is read before the first write.
-- Memory that may have been lost shows in the server's identity, in a client's fence, in a client's clock.
local replication = call('INFO', 'replication')
local at = string.find(replication, 'master_replid:', 1, true)
local current = at and match(replication, '^%x+', at + 14) or '-'
if defined then
  if incarnation ~= current or seen > top or jumped then
    epoch, lost_at, top = max(now, epoch + 1), now, max(top, seen)
    if tickets > 0 then line('clear')() end
  end
  if tickets > 0 then line('sweep')() end
  local overdue = call('ZRANGEBYSCORE', PLACES, format('%d', WHEN_DUE), format('%d', WHEN_DUE + now), 'LIMIT', '0', SWEEP)
  for i = 1, #overdue do
    local s = load(overdue[i])
    if not s then
      call('ZREM', PLACES, overdue[i])
    elseif s.state == 'l' then
      if s.kind ~= 'u' then s.kind = 'd' end
      settle(s, s.ends)
    else
      if s.state == 'h' and tickets > 0 then line('pass')(s.holder) end
      if s.mode == 'e' or s.mode == 'p' then
        make_ready(s)
        save(s)
      else
        settle(s, s.ends)
      end
    end
  end
end
incarnation = current

-- The releases come first: their records are read together.
local ids, next = {}, cursor + 1
while ARGV[next] == 'release' and #ids < CHUNK do
  ids[#ids + 1] = ARGV[next + 1]
  next = next + 6
end
if ids[2] then
  local packed = call('HMGET', SLOTS, unpack(ids))
  for i = 1, #ids do
    if not records[ids[i]] then unfold(ids[i], packed[i]) end
  end
end

local lines, said = { '' }, 1
while cursor < words do
  local at, name, answer = cursor, ARGV[cursor + 1], nil
  if name == 'more' then
    cursor = at + 3
    waited = tonumber(ARGV[at + 3])
    answer = claim(ARGV[at + 2])
  elseif name == 'release' then
    cursor = at + 6
    answer = release(ARGV[at + 2], tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4]), ARGV[at + 5], ARGV[at + 6])
  elseif name == 'claim' then
    ttl, max_hold, wait = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4]), ARGV[at + 5] == '1'
    longest = max(longest, ttl)
    priority, ageing, waited = tonumber(ARGV[at + 6]), tonumber(ARGV[at + 7]), tonumber(ARGV[at + 8])
    if ARGV[at + 9] == 'any' then
      cursor = at + 12
      strategy, least, most = ARGV[at + 10], tonumber(ARGV[at + 11]), tonumber(ARGV[at + 12])
      answer = claim(ARGV[at + 2])
    elseif ARGV[at + 9] == 'these' then
      cursor = at + 11
      least, most = tonumber(ARGV[at + 10]), tonumber(ARGV[at + 11])
      answer = seldom('these')(ARGV[at + 2])
    else
      cursor = at + 9
      answer = seldom('named')(ARGV[at + 2])
    end
  else
    cursor = at + 1
    answer = seldom(name)()
  end
  said = said + 1
  lines[said] = answer
end

if tickets > 0 then line('serve')() end
arrange()
flush()
freed = max(min(freed, certain + doubtful), 0)
if waiters_until <= now then freed = 0 end
local calls = concat({ format('%d', freed), unpack(called) }, ' ')
lines[1] = format('done %d %d ', now, top) .. calls
local answer = concat(lines, '\n')
call('SET', META, pack(POOL, SCHEMA, last, shift, epoch, lost_at, longest, doubt_rest, top, waiters_until, arrived,
  certain, doubtful, heaviest, tickets, namers, incarnation))
if sequence ~= '-' then
  local keep_until = (not_after == '-' and now or tonumber(not_after)) + LANE_GRACE
  local milliseconds = format('%d', math.ceil((keep_until - now) / 1000))
  call('SET', LANE, format('%s %d\n', sequence, keep_until) .. answer, 'PX', milliseconds)
end
-- A user without rights to the channel must not fail here, after the writes: waiters ask again by themselves.
if freed > 0 or called[1] then redis.pcall('PUBLISH', channel, calls) end
return answer
