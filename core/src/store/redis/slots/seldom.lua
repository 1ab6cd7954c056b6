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
  local answer = at_once(holder)
  if answer then return answer end
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
  local answer = at_once(holder)
  if answer then return answer end
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
  if s.state == 'h' and tickets > 0 then line('break_offer')(s) end
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
