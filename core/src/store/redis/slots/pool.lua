-- The machine of slots, second wording; the first is core/src/slots. Equal envelopes at equal moments get
-- equal answers from both: change neither alone.
--
-- KEYS  1 meta, 2 slots, 3 places, 4 line, 5 tickets, 6 lane
-- ARGV  schema, sequence | '-', not_after | '-', seen, jumped, seed, channel, then the requests word by word
--
-- Numbers that are nonces stay text: a Lua number is a double. Times (microseconds), fences and sequences stay
-- below 2^53, where doubles are exact. An error is raised before the first write only.
--
-- A server runs one command at a time, so that what this costs is what all clients have together. A record is read
-- and written once an envelope, packed. Every call makes all functions anew, and each of them searches for the
-- variables that it takes from around it, one by one: there are few of either. What is asked for in one place stands
-- there, in the loop that begins in `envelope` and ends in `reply`; what is seldom needed is made when it is; names in
-- capitals are no variables (see build.rs). To print a number, or to read one, costs as much as some commands: a text
-- that is there is told again, and `+ 0` reads it once, which `tonumber` does twice. A table that is made with places
-- (`{ nil }`) need not grow.

local SCHEMA, SCHEMA_TOLD = '4', '4\0' -- as it is told at the head of a record
local SWEEP, MANY, INTEREST, TICKET_LIFE, OFFER = '128', 128, 10000000, 10000000, 1000000
local VALIDITY, LOOK = 10000000, 1000000
local DOUBT, QUEUE = 8, 281474976710656 -- the queue of slots in doubt; the scores of one queue (2^48)
-- Behind the queues stand the slots that are leased, offered or cool down, by when they come due, and then the
-- tickets, by when they lapse.
local WHEN_DUE, WHEN_LAPSED = 2533274790395904, 5629499534213120 -- 9 and 20 queues
local LATEST = 3033152743817216 -- two years before the first would be that far
-- The same as texts.
local FROM_DOUBT, FROM_DUE, FROM_LAPSED = '2251799813685248', '2533274790395904', '5629499534213120'
local BELOW_DOUBT, BELOW_DUE, BELOW_LAPSED = '(2251799813685248', '(2533274790395904', '(5629499534213120'
local MAX_SLOTS, MAX_TICKETS, DRAWS, CHUNK = 1000000, 100000, 32, 1000 -- Lua unpacks some 8000 values at most
local META, SLOTS, PLACES, LINE, TICKETS, LANE = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]

-- The pool's own record, as a list. WAITING are all tickets, NAMERS those in the lines of names; LEAVING are the leased
-- slots that will not be ready when they are given back. Nothing comes due before DUE, and before so many new slots
-- as ROOM says the pool is not full: nobody has to look. PROLONGED is the highest fence when the quiet time became as long as it
-- is, or memory was lost: who has seen a higher one has heard of it.
local POOL, POOL_END = '<sddddddddddddddsdddd', 20 -- see struct.pack
local LAST, SHIFT, EPOCH, LOST_AT, LONGEST, DOUBT_REST, TOP, WAITERS_UNTIL = 2, 3, 4, 5, 6, 7, 8, 9
local ARRIVED, CERTAIN, DOUBTFUL, HEAVIEST, WAITING, NAMERS, INCARNATION, LEAVING = 10, 11, 12, 13, 14, 15, 16, 17
local DUE, ROOM, PROLONGED = 18, 19, 20

local args, call, format = ARGV, redis.call, string.format
if args[1] ~= SCHEMA then
  return redis.error_reply('SCHEMA this server runs schema ' .. SCHEMA .. ' of leasehold')
end
local sequence, not_after, seen = args[2] ~= '-' and args[2] + 0, args[3] ~= '-' and args[3] + 0, args[4] + 0
local cursor, words = 7, #args

local pool
local kept = call('MGET', META, LANE)
local meta, lane = kept[1], kept[2]
if meta then
  if string.sub(meta, 1, 2) ~= SCHEMA_TOLD then
    local schema = string.match(meta, '^%w*')
    return redis.error_reply('SCHEMA this pool has schema ' .. schema .. ' of leasehold')
  end
  pool = { struct.unpack(POOL, meta) }
else
  pool = { SCHEMA, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '-', 0, 0, 0, 0 }
end

-- Store time runs forward only; a clock that was set back goes on from where it was, at its own pace.
local clock = call('TIME')
local wall = clock[1] * 1000000 + clock[2]
local now = wall + pool[SHIFT]
if now < pool[LAST] then now = pool[LAST] end
-- What comes due after LATEST would stand among the tickets, and time that the pool has seen never goes back.
if now > LATEST then return redis.error_reply('CLOCK this server says that it is 2066 or later; set its clock right') end

local now_told = format('%d', now)

--@ server/less

local MOMENT, MOMENT_TOLD = now, now_told
--@ lane/recall
-- One that set out before memory was lost may have been performed then.
if not_after and (now > not_after or not_after < pool[EPOCH] + VALIDITY) then return 'stale ' .. now_told end
if not meta and args[cursor + 1] ~= 'define' then return 'done ' .. now_told .. ' 0 0\nundefined' end
-- What is there but no text is somebody else's, and fails here.
if not meta then call('GET', META) end

pool[SHIFT], pool[LAST] = now - wall, now
local quiet = pool[LONGEST] + pool[DOUBT_REST]
local freed, called, touched = 0, '', {} -- touched: names that came free, or whose line moved up
local rested -- when the first of those that were put to rest comes due
