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
