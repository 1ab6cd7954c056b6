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
