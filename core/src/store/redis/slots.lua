-- The machine of slots, second wording; the first is core/src/slots. Equal envelopes at equal moments get
-- equal answers from both: change neither alone.
--
-- KEYS  1 meta, 2 slots, 3 ready, 4 due, 5 lane
-- ARGV  schema, channel, sequence | '-', not_after | '-', seen, jumped, seed, then the requests word by word
--
-- Numbers that are nonces stay text: a Lua number is a double. Times (microseconds) and fences stay below
-- 2^53, where doubles are exact. An error is raised before the first write only.
--
-- A server runs one command at a time, so that what this costs is what all clients have together: a record is read
-- once and written once an envelope, packed, and the set of what is due follows from the records when they are
-- written.

local SCHEMA = '2'
local SWEEP, INTEREST, LANE_GRACE = 128, 30000000, 60000000
local DOUBT, QUEUE = 8, 281474976710656 -- the queue of slots in doubt; the scores of one queue (2^48)
local MAX_SLOTS, DRAWS, CHUNK = 1000000, 32, 1000 -- Lua unpacks some 8000 values at most

local META, SLOTS, READY, DUE, LANE = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local call, format, match, floor, max, min = redis.call, string.format, string.match, math.floor, math.max, math.min
local pack, unpack_all = cmsgpack.pack, cmsgpack.unpack

local cursor = 0
local function word()
  cursor = cursor + 1
  return ARGV[cursor]
end
local function number()
  return tonumber(word())
end
local function text(n)
  return format('%d', n)
end

if word() ~= SCHEMA then
  return redis.error_reply('SCHEMA this server runs schema ' .. SCHEMA .. ' of leasehold')
end
local channel, sequence, not_after = word(), word(), word()
local seen, jumped, seed = number(), word() == '1', number()

-- The pool's own record.
local defined, last, shift, incarnation, epoch, lost_at = false, 0, 0, '-', 0, 0
local longest, doubt_rest, top, waiters_until, arrived, certain, doubtful, heaviest = 0, 0, 0, 0, 0, 0, 0, 0
local meta = call('GET', META)
if meta then
  local schema, packed = match(meta, '^(%S+) (.*)$')
  if schema ~= SCHEMA then
    return redis.error_reply('SCHEMA this pool has schema ' .. (schema or '?') .. ' of leasehold')
  end
  defined = true
  last, shift, incarnation, epoch, lost_at, longest, doubt_rest, top, waiters_until, arrived, certain, doubtful,
    heaviest = unpack_all(packed)
end

-- Store time runs forward only; a clock that was set back goes on from where it was, at its own pace.
local clock = call('TIME')
local wall = clock[1] * 1000000 + clock[2]
local now = max(wall + shift, last)

-- An envelope that came before is answered again; one that comes too late changes nothing.
if sequence ~= '-' then
  local before, keep_until = match(call('GETRANGE', LANE, 0, 40), '^(%d+) (%d+)\n')
  if before then
    if tonumber(keep_until) > now then
      if tonumber(before) == tonumber(sequence) then return match(call('GET', LANE), '\n(.*)$') end
      if tonumber(before) > tonumber(sequence) then return 'stale ' .. text(now) end
    end
  end
end
if not_after ~= '-' and now > tonumber(not_after) then return 'stale ' .. text(now) end

local lines = { '' }
local function reply(line)
  lines[#lines + 1] = line
end
if not defined and ARGV[cursor + 1] ~= 'define' then
  return 'done ' .. text(now) .. ' 0 0\nundefined'
end

shift = now - wall
last = now
local freed = 0

-- The records that this envelope has read, and those of them to be written when it ends or when something asks the
-- server for what they decide. `due` is the score that the server has of a slot in its set of what is due.
local records, changed = {}, {}
local function load(id)
  local s = records[id]
  if s then return s end
  local packed = call('HGET', SLOTS, id)
  if not packed then return nil end
  local mode, state, weight, mark, fence, holder, since, ends, hold, rest, barred, kind, nonce, raised =
    unpack_all(packed)
  s = { id = id, mode = mode, state = state, weight = weight, epoch = mark, fence = fence, holder = holder,
    since = since, ends = ends, hold = hold, rest = rest, barred = barred, kind = kind, floor = nonce, raised = raised,
    due = (state == 'l' or state == 'c') and ends }
  records[id] = s
  return s
end
local function save(s)
  if not s.changed then
    s.changed = true
    changed[#changed + 1] = s
  end
end
local function write(command, key, words)
  for i = 1, #words, CHUNK do call(command, key, unpack(words, i, min(i + CHUNK - 1, #words))) end
end
local function flush()
  local written, leaves, comes = {}, {}, {}
  for i = 1, #changed do
    local s = changed[i]
    s.changed = false
    if s.mode ~= 'r' or s.state == 'l' then
      written[#written + 1] = s.id
      written[#written + 1] = pack(s.mode, s.state, s.weight, s.epoch, s.fence, s.holder, s.since, s.ends, s.hold,
        s.rest, s.barred, s.kind, s.floor, s.raised)
    end
    local due = (s.state == 'l' or s.state == 'c') and s.ends
    if due and due ~= s.due then
      comes[#comes + 1] = text(due)
      comes[#comes + 1] = s.id
    elseif s.due and not due then
      leaves[#leaves + 1] = s.id
    end
    s.due = due
  end
  changed = {}
  write('HSET', SLOTS, written)
  write('ZREM', DUE, leaves)
  write('ZADD', DUE, comes)
end

-- Nonces, as decimal text: by length, then by text.
local function less(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end
local function set_nonce(s, kind, value, at)
  if value ~= s.floor then s.raised = at end
  s.kind, s.floor = kind, value
end
local function unsettle(s)
  if s.kind ~= 'u' then s.kind = 'd' end
end
-- The record after an outcome; false where the outcome would put the nonce back.
local function outcome_of(s, outcome, value)
  if outcome == 'unused' then return s.kind, s.floor end
  if outcome == 'unsettled' then return s.kind == 'u' and 'u' or 'd', s.floor end
  if outcome == 'used' then
    if s.kind == 'k' and not less(s.floor, value) then return false end
    if s.floor ~= '-' and less(value, s.floor) then return false end
    return 'k', value
  end
  if outcome == 'rejected' and value ~= '-' and (s.floor == '-' or not less(value, s.floor)) then return 'k', value end
  return 'd', s.floor
end

-- The places of a slot: ready (in a queue), due (leased or cooling), or out.
local function queue_of(s)
  if s.kind == 'd' then return DOUBT end
  local queue, weight = 0, s.weight
  while weight >= 2 do
    queue, weight = queue + 1, weight / 2
  end
  return queue
end
local function make_ready(s)
  local queue = queue_of(s)
  s.state = 'r'
  call('ZADD', READY, text(queue * QUEUE + arrived), s.id)
  arrived = arrived + 1
  freed = freed + 1
  if queue == DOUBT then doubtful = doubtful + 1 else certain = certain + 1 end
  if queue ~= DOUBT and queue > heaviest then heaviest = queue end
end
local function leave_queue(s)
  if s.state ~= 'r' then return end
  call('ZREM', READY, s.id)
  if s.kind == 'd' then doubtful = doubtful - 1 else certain = certain - 1 end
end
-- Where a slot goes that is leased no more since `ended`; it is in no queue when this is called.
local function settle(s, ended)
  save(s)
  if s.mode == 'r' then
    s.state = 'o'
    call('HDEL', SLOTS, s.id)
    records[s.id] = nil
    flush()
    return
  end
  if s.mode ~= 'e' then
    s.mode, s.state = 'x', 'o'
    return
  end
  if s.kind == 'd' then s.rest = max(s.rest, ended + doubt_rest) end
  local ends = max(s.rest, s.barred)
  if ends > now then
    s.state, s.ends = 'c', ends
  else
    make_ready(s)
  end
end

local function quiet_until()
  return lost_at == 0 and 0 or lost_at + longest + doubt_rest
end

-- Randomness that the machine repeats: products below 2^53.
local function draw()
  local value = seed
  seed = (seed * 1664525 + 1013904223) % 4294967296
  return value
end
local function below(bound)
  return floor(draw() * bound / 4294967296)
end
local function below_large(bound)
  return floor(floor(draw() / 256) * bound / 16777216)
end

local function at_rank(rank)
  return call('ZRANGE', READY, rank, rank)[1]
end
local function range_of(queue)
  return text(queue * QUEUE), '(' .. text((queue + 1) * QUEUE)
end
local choose = {}
function choose.random()
  return at_rank(below(certain))
end
function choose.recent()
  if heaviest == 0 then return at_rank(0) end
  local oldest, arrival
  for queue = 0, heaviest do
    local low, high = range_of(queue)
    local head = call('ZRANGEBYSCORE', READY, low, high, 'WITHSCORES', 'LIMIT', 0, 1)
    local came = head[1] and tonumber(head[2]) - queue * QUEUE
    if came and (not arrival or came < arrival) then oldest, arrival = head[1], came end
  end
  return oldest
end
function choose.weighted()
  local counts, total = {}, 0
  for queue = 0, heaviest do
    counts[queue] = heaviest == 0 and certain or call('ZCOUNT', READY, range_of(queue))
    total = total + counts[queue] * (2 ^ (queue + 1) - 1)
  end
  local id
  for _ = 1, DRAWS do
    local point, queue, rank = below_large(total), 0, 0
    while point >= counts[queue] * (2 ^ (queue + 1) - 1) do
      point = point - counts[queue] * (2 ^ (queue + 1) - 1)
      rank = rank + counts[queue]
      queue = queue + 1
    end
    id = at_rank(rank + below(counts[queue]))
    local accepted = below(2 ^ (queue + 1) - 1)
    if heaviest == 0 or accepted < load(id).weight then break end
  end
  return id
end

local function grant(s, holder, ttl, max_hold)
  leave_queue(s)
  top = max(now, top + 1)
  if s.epoch ~= epoch then
    unsettle(s)
    s.epoch = epoch
  end
  s.state, s.fence, s.holder, s.since = 'l', top, holder, now
  s.hold = max_hold == 0 and 0 or now + max_hold
  s.ends = now + (max_hold == 0 and ttl or min(ttl, max_hold))
  save(s)
  return ' ' .. s.id .. ' ' .. text(top) .. ' ' .. text(s.ends) .. ' ' .. s.kind .. ' ' .. s.floor
end

-- The slot of a live lease, or why it is not held.
local function held()
  local id, fence = word(), number()
  local s = load(id)
  if not s then return nil, 'gone' end
  local current = s.fence
  if current > fence then return nil, 'taken' end
  if current < fence then return nil, 'forgotten' end
  if s.state ~= 'l' then return nil, 'ended' end
  if s.ends <= now then return nil, 'expired' end
  return s
end

local perform = {}

local function claim_any(holder, ttl, max_hold, strategy, least, most)
  if quiet_until() > now then return 'refused quiet ' .. text(quiet_until()) end
  if certain + doubtful < least then
    flush()
    local next_due = call('ZRANGE', DUE, 0, 0, 'WITHSCORES')
    local why = call('HLEN', SLOTS) == 0 and 'noslot' or 'exhausted'
    return 'refused ' .. why .. ' ' .. (next_due[2] and text(tonumber(next_due[2])) or '-')
  end
  local grants = {}
  for i = 1, min(most, certain + doubtful) do
    local id = certain == 0 and at_rank(0) or choose[strategy]()
    grants[i] = grant(load(id), holder, ttl, max_hold)
  end
  return 'granted ' .. #grants .. table.concat(grants)
end
local function claim_these(holder, ttl, max_hold)
  local least, most, count = number(), number(), number()
  local ids, found, earliest, missing = {}, {}, nil, false
  for i = 1, count do ids[i] = word() end
  if quiet_until() > now then return 'refused quiet ' .. text(quiet_until()) end
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
  if missing then return 'refused noslot -' end
  if #found < least then return 'refused exhausted ' .. (earliest and text(earliest) or '-') end
  local grants = {}
  for i = 1, #found do grants[i] = grant(found[i], holder, ttl, max_hold) end
  return 'granted ' .. #grants .. table.concat(grants)
end

-- What the last claim asked for; where it was one of any slot, those that follow may ask for the same.
local ttl, max_hold, wait, strategy, least, most
local function answer_claim(line)
  if wait and match(line, '^refused') then waiters_until = now + INTEREST end
  reply(line)
end
function perform.claim()
  local holder = word()
  ttl, max_hold, wait = number(), number(), word() == '1'
  longest = max(longest, ttl)
  if word() == 'these' then return answer_claim(claim_these(holder, ttl, max_hold)) end
  strategy, least, most = word(), number(), number()
  answer_claim(claim_any(holder, ttl, max_hold, strategy, least, most))
end
function perform.more()
  answer_claim(claim_any(word(), ttl, max_hold, strategy, least, most))
end

function perform.renew()
  local s, loss = held()
  local ttl = number()
  longest = max(longest, ttl)
  if not s then return reply('lost ' .. loss) end
  local limit, ends = s.hold, now + ttl
  if limit ~= 0 then ends = min(limit, ends) end
  if s.mode ~= 'x' and ends > s.ends then
    s.ends = ends
    save(s)
  end
  reply('renewed ' .. text(s.ends))
end

function perform.release()
  local s, loss = held()
  local cooldown, outcome, value = number(), word(), word()
  if not s then return reply('lost ' .. loss) end
  local kind, after = outcome_of(s, outcome, value)
  if not kind then return reply('backwards ' .. s.kind .. ' ' .. s.floor) end
  set_nonce(s, kind, after, now)
  s.rest = max(s.rest, now + cooldown)
  settle(s, now)
  reply('released')
end

function perform.resync()
  local s, loss = held()
  local chain, rewind, settles = word(), word() == '1', number()
  if not s then return reply('lost ' .. loss) end
  if s.floor ~= '-' and less(chain, s.floor) and not rewind then
    local ends = s.raised + settles
    if ends > now then return reply('behind ' .. s.floor .. ' ' .. text(ends)) end
  end
  set_nonce(s, 'k', chain, now)
  save(s)
  reply('resynced ' .. chain)
end

local function add(id, weight)
  local s = load(id)
  if not s then
    s = { id = id, mode = 'e', weight = weight, epoch = 0, fence = 0, holder = '0', since = 0, ends = 0, hold = 0,
      rest = 0, barred = 0, kind = 'u', floor = '-', raised = 0 }
    records[id] = s
    make_ready(s)
    return save(s)
  end
  local moves = s.state == 'r' and s.weight ~= weight
  if moves then leave_queue(s) end
  s.weight = weight
  if s.mode == 'r' then s.mode = 'e' end
  if moves then make_ready(s) end
  save(s)
end

function perform.define()
  local wanted, rest, count = number(), number(), number()
  local first = cursor
  cursor = cursor + 2 * count
  local total, new = call('HLEN', SLOTS), 0
  for i = 1, count do
    if call('HEXISTS', SLOTS, ARGV[first + 2 * i - 1]) == 0 then new = new + 1 end
  end
  if total + new > MAX_SLOTS then return reply('full') end
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
  flush()
  local all = call('HLEN', SLOTS)
  reply('defined ' .. text(all - total) .. ' ' .. text(all))
end

function perform.change()
  local id, change, amount = word(), word(), number()
  local s = load(id)
  if not s then return reply('noslot') end
  local stays = s.state == 'l' and change ~= 'break'
  local leased = s.state == 'l'
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
    if not leased then unsettle(s) end
  elseif leased then
    unsettle(s)
  end
  if stays then save(s) else settle(s, now) end
  reply('changed')
end

function perform.inspect()
  local count, views, found = number(), {}, 0
  for _ = 1, count do
    local s = load(word())
    if s then
      found = found + 1
      views[found] = ' ' .. s.id .. ' ' .. s.mode .. ' ' .. s.state .. ' ' .. s.weight .. ' ' .. text(s.fence) .. ' '
        .. s.holder .. ' ' .. text(s.since) .. ' ' .. text(s.ends) .. ' ' .. s.kind .. ' ' .. s.floor
    end
  end
  flush()
  reply('inspected ' .. text(call('HLEN', SLOTS)) .. ' ' .. text(certain + doubtful) .. ' ' .. text(doubtful) .. ' '
    .. text(call('ZCARD', DUE)) .. ' ' .. text(quiet_until()) .. ' ' .. found .. table.concat(views))
end

function perform.list()
  local ids = call('HKEYS', SLOTS)
  reply('listed ' .. #ids .. (#ids > 0 and ' ' or '') .. table.concat(ids, ' '))
end

-- What the records of all requests need of the server is read before the first write.
-- Memory that may have been lost shows in the server's identity, in a client's fence, in a client's clock.
local replication = call('INFO', 'replication')
local at = string.find(replication, 'master_replid:', 1, true)
local current = at and match(replication, '^%x+', at + 14) or '-'
if defined then
  if incarnation ~= current or seen > top or jumped then
    epoch, lost_at, top = max(now, epoch + 1), now, max(top, seen)
  end
  local overdue = call('ZRANGEBYSCORE', DUE, '-inf', text(now), 'LIMIT', 0, SWEEP)
  for i = 1, #overdue do
    local s = load(overdue[i])
    if s.state == 'l' then
      unsettle(s)
      settle(s, s.ends)
    else
      make_ready(s)
      save(s)
    end
  end
end
incarnation = current

while cursor < #ARGV do
  local request = perform[word()]
  request()
end

flush()
if freed > certain + doubtful then freed = certain + doubtful end
if waiters_until <= now then freed = 0 end
lines[1] = 'done ' .. text(now) .. ' ' .. text(top) .. ' ' .. text(freed)
local answer = table.concat(lines, '\n')
call('SET', META, SCHEMA .. ' ' .. pack(last, shift, incarnation, epoch, lost_at, longest, doubt_rest, top,
  waiters_until, arrived, certain, doubtful, heaviest))
if sequence ~= '-' then
  local keep_until = (not_after == '-' and now or tonumber(not_after)) + LANE_GRACE
  local milliseconds = text(math.ceil((keep_until - now) / 1000))
  call('SET', LANE, sequence .. ' ' .. text(keep_until) .. '\n' .. answer, 'PX', milliseconds)
end
-- A user without rights to the channel must not fail here, after the writes: waiters ask again by themselves.
if freed > 0 then redis.pcall('PUBLISH', channel, text(freed)) end
return answer
