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
