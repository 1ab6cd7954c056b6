-- The order of places: the queues by arrival, then what comes due. The server is told of moves when something asks
-- for the order, and of records, or at the end. The row that claims take from, of which so many are picked, is nil once
-- anything else has changed the order: so a row of claims is one read and one write.
local moves, changed, row, picked = { nil, nil }, { nil }, nil, nil
-- Stands behind all. A member so long (of more than 64 bytes) keeps the server from packing a small set into one list,
-- which it would search from one end.
local GUARD = '%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%% no slot and no ticket %%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%'
local function arrange(records_too)
  -- The places first: a slot that has its place and no record is made again, one that has no place is never found.
  if moves[1] then
    for i = 1, #moves, CHUNK do call('ZADD', PLACES, unpack(moves, i, math.min(i + CHUNK - 1, #moves))) end
    moves, row = {}, nil
  end
  if not records_too or not changed[1] then return end
  local written, at = { nil, nil }, 0
  for i = 1, #changed do
    local s = changed[i]
    s[CHANGED] = false
    if s[MODE] ~= 'r' or s[STATE] ~= 'o' then
      at = at + 2
      written[at - 1], written[at] = s[ID], struct.pack(SLOT, unpack(s, MODE, CLAIMANT))
    end
  end
  changed = {}
  for i = 1, at, CHUNK do call('HSET', SLOTS, unpack(written, i, math.min(i + CHUNK - 1, at))) end
end
local function total()
  if not all then
    arrange(true)
    all = call('HLEN', SLOTS)
    pool[ROOM] = MAX_SLOTS - all
  end
  return all
end
-- The record of a slot is to be written, which leaves its queue if it is in one, and goes to a place if it has one: that
-- of who comes due is told by when it ends.
local function put(s, state, place)
  if s[STATE] == 'r' then
    if row and s[ID] ~= row[picked] then row = nil end
    local count = s[KIND] == 'd' and DOUBTFUL or CERTAIN
    pool[count] = pool[count] - 1
  end
  s[STATE] = state
  if not s[CHANGED] then
    s[CHANGED] = true
    changed[#changed + 1] = s
  end
  if place then
    local at = #moves
    moves[at + 1], moves[at + 2] = place, s[ID]
    if state ~= 'r' and s[ENDS] < pool[DUE] then pool[DUE] = s[ENDS] end
  end
end

-- Where a slot goes that is leased no more since `ended`, or was only offered: into a queue, to what comes due, or out.
-- One that was made for its lease (mode p) passes.
local function settle(s, ended)
  local mode, state = s[MODE], s[STATE]
  if mode == 'r' and state == 'c' or mode ~= 'e' and mode ~= 'p' and state == 'l' then
    pool[LEAVING] = math.max(pool[LEAVING] - 1, 0)
  end
  -- It was put under quarantine while it was leased, and whatever its holder said of the nonce since is not trusted.
  if s[MARK] == 0 and s[KIND] == 'k' then s[KIND] = 'd' end
  if mode == 'd' or mode == 'x' then
    s[MODE] = 'x'
    put(s, 'o')
    -- The record first: a place that it does not agree with is found, and a slot without one is not.
    arrange(true)
    call('ZREM', PLACES, s[ID])
    return
  end
  -- Who adds one in doubt again that was removed finds it as it was, until its rest is over.
  if ended and (mode ~= 'r' or s[KIND] == 'd') then
    if s[KIND] == 'd' then s[REST] = math.max(s[REST], ended + pool[DOUBT_REST]) end
    local ends = s[REST]
    if s[BARRED] > ends and mode ~= 'r' then ends = s[BARRED] end
    if ends > now then
      if mode == 'r' then pool[LEAVING] = pool[LEAVING] + 1 end
      s[ENDS] = ends
      if not rested or ends < rested then rested = ends end
      return put(s, 'c', format('%d', WHEN_DUE + ends))
    end
  end
  if pool[NAMERS] > 0 then touched[#touched + 1] = s[ID] end
  if mode == 'r' or mode == 'p' then
    arrange()
    call('HDEL', SLOTS, s[ID])
    call('ZREM', PLACES, s[ID])
    records[s[ID]] = nil
    if all then all = all - 1 end
    s[MODE], s[STATE] = 'r', 'o'
    return
  end
  local count, queue, weight = CERTAIN, 0, s[WEIGHT]
  if s[KIND] == 'd' then
    count, queue = DOUBTFUL, DOUBT
  else
    while weight >= 2 do
      queue, weight = queue + 1, weight / 2
    end
    if queue > pool[HEAVIEST] then pool[HEAVIEST] = queue end
  end
  put(s, 'r', format('%d', queue * QUEUE + pool[ARRIVED]))
  row = nil
  pool[count] = pool[count] + 1
  pool[ARRIVED] = pool[ARRIVED] + 1
  freed = freed + 1
end
