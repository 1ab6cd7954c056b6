-- Which slot is next. The functions are made when one is asked for.
local drawing
function draw(name)
if drawing then return drawing[name] end
drawing = {}

-- Randomness that the machine repeats: products below 2^53.
local seed, from, row_of = args[6], nil, nil
local function random()
  local value = seed
  seed = (seed * 1664525 + 1013904223) % 4294967296
  return value
end

function drawing.count()
  arrange()
  pool[CERTAIN] = call('ZCOUNT', PLACES, '-inf', BELOW_DOUBT)
  pool[DOUBTFUL] = call('ZCOUNT', PLACES, FROM_DOUBT, BELOW_DUE)
end
-- By age or by weight, where weights differ: each queue is asked for.
local function choose(strategy)
  arrange()
  local heaviest = pool[HEAVIEST]
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
  local floor, counts, weights, id = math.floor, {}, 0, nil
  for queue = 0, heaviest do
    counts[queue] = call('ZCOUNT', PLACES, range_of(queue))
    weights = weights + counts[queue] * (2 ^ (queue + 1) - 1)
  end
  if weights == 0 then return nil end
  for _ = 1, DRAWS do
    local point, queue, rank = floor(floor(random() / 256) * weights / 16777216), 0, 0
    while point >= counts[queue] * (2 ^ (queue + 1) - 1) do
      point = point - counts[queue] * (2 ^ (queue + 1) - 1)
      rank = rank + counts[queue]
      queue = queue + 1
    end
    rank = rank + floor(random() * counts[queue] / 4294967296)
    id = call('ZRANGE', PLACES, rank, rank)[1]
    local accepted = floor(random() * (2 ^ (queue + 1) - 1) / 4294967296)
    if heaviest == 0 then break end
    local s = load(id)
    if not s or accepted < s[WEIGHT] then break end
  end
  return id
end
-- The ready slot that is next by a strategy, one of so many that a claim still wants. Those that the claims after it take
-- are read with it.
function drawing.pick(strategy, count)
  local certain, rank, id = pool[CERTAIN], 0, nil
  if strategy == 'random' and certain > 0 then
    -- One draw an envelope, and from there on in their order.
    if not from then
      from = random() * certain / 4294967296
      from = from - from % 1
    elseif from >= certain then
      from = 0
    end
    rank = from
  elseif certain > 0 and (strategy ~= 'recent' or pool[HEAVIEST] > 0) then
    rank, id = nil, choose(strategy)
  end
  if rank then
    -- Those in doubt follow when all others of the row are taken.
    id = row and row_of == strategy and row[picked + 1]
    if not id then
      arrange()
      row_of, picked = strategy, 0
      local last, at = rank + count - 1, cursor
      while args[at + 1] == 'more' do last, at = last + count, at + 3 end
      if last >= rank + CHUNK then last = rank + CHUNK - 1 end
      if certain > 0 and last >= certain then last = certain - 1 end
      row = call('ZRANGE', PLACES, format('%d', rank), format('%d', last))
      if row[2] then
        local packed = call('HMGET', SLOTS, unpack(row))
        for i = 1, #row do load(row[i], packed[i]) end
      end
      id = row[1]
    end
    picked = picked + 1
  end
  local s = id and load(id)
  if s and s[STATE] == 'r' then return s end
  -- A script that died between two writes, because a right was taken away, left a slot elsewhere than its record says,
  -- and counts that are out of date: all are counted anew, and the slot is put right as it is found.
  arrange()
  if s and (s[STATE] == 'l' or s[STATE] == 'h' or s[STATE] == 'c') then
    call('ZADD', PLACES, format('%d', WHEN_DUE + s[ENDS]), id)
    pool[DUE] = 0
  elseif id then
    call('ZREM', PLACES, id)
  end
  drawing.count()
  -- Nothing was moved, perhaps, and ranks have changed all the same; nor is it sure how heavy slots are.
  row, pool[HEAVIEST] = nil, DOUBT - 1
end

return drawing[name]
end
end

if not alone then
