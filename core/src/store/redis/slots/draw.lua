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
