-- Who waits, and in what order: a line of tickets for any slot (%), one for each name. The functions are made when
-- somebody waits.
local queue
function line(name)
if queue then return queue[name] end
queue = {}

-- A ticket is kept as text: when it lapses, its turn, its priority, how long it waits for those from whom it steals
-- (or -), how many slots it wants and how they are chosen, whether it has an offer, and the names that it waits for or the
-- slots that are offered to it.
local cards = {}
local function find(holder)
  local card = cards[holder]
  if card ~= nil then return card end
  local text = call('HGET', TICKETS, holder)
  if text then
    local ends, turn, priority, steal, count, how, offered, rest =
      string.match(text, '^(%d+) (%d+) (%S+) (%S+) (%d+) (%a+) (%d)(.*)$')
    card = { ends = tonumber(ends), turn = turn, priority = tonumber(priority), steal = steal, count = tonumber(count),
      how = how, ids = {} }
    card.offered = offered == '1'
    for id in string.gmatch(rest, '%S+') do card.ids[#card.ids + 1] = id end
  end
  cards[holder] = card or false
  return card
end
queue.find = find
local function keep(holder, card)
  cards[holder] = card
  call('HSET', TICKETS, holder, format('%d %s %d %s %d %s %d ', card.ends, card.turn, card.priority,
    card.steal, card.count, card.how, card.offered and 1 or 0) .. table.concat(card.ids, ' '))
end
-- Whether it wants some of its names. Those who do stand in a row of theirs (%%) too, so that all can be found.
local function chooses(card)
  return card.count > 0 and card.ids[1]
end
local function touch(ids)
  for _, id in ipairs(ids) do touched[#touched + 1] = id end
end
local function entries(holder, card)
  local own = {}
  for i, id in ipairs(card.ids[1] and card.ids or { '%' }) do own[i] = id .. ' ' .. card.turn .. holder end
  if chooses(card) then own[#own + 1] = '%% ' .. holder end
  return own
end
local function stand(holder, card)
  local words = {}
  for i, entry in ipairs(entries(holder, card)) do words[2 * i - 1], words[2 * i] = '0', entry end
  call('ZADD', LINE, unpack(words))
end
local passed = {} -- touched names that are ready for one of those, but others stand before it in the line of any slot
local moved = false -- whether somebody left that line who may have kept those behind it from what is ready
local function stand_aside(holder, card)
  call('ZREM', LINE, unpack(entries(holder, card)))
  call('ZREM', PLACES, '%' .. holder)
  if card.ids[1] then pool[NAMERS] = pool[NAMERS] - 1
  elseif card.count > 1 then moved = true
  end
end
local function drop(holder)
  call('HDEL', TICKETS, holder)
  cards[holder] = false
  pool[WAITING] = pool[WAITING] - 1
end
local function leave(holder)
  local card = find(holder)
  if not card then return nil end
  drop(holder)
  if not card.offered then
    stand_aside(holder, card)
    touch(card.ids)
  end
  return card
end
queue.leave = leave

-- Tickets of a pool that nobody asks for long expire uncounted, and so are those that a script made that died.
local function recount()
  pool[WAITING] = call('HLEN', TICKETS)
  pool[NAMERS] = math.min(pool[NAMERS], pool[WAITING])
end
-- The end of an offer that this slot is a part of.
function queue.end_offer(holder, id)
  local card = find(holder)
  if not card then return recount() end
  if not card.offered then return end
  for _, offered in ipairs(card.ids) do
    if offered == id then
      drop(holder)
      return card.ids
    end
  end
end

-- Nobody came for a slot that was offered: whoever of that process stands among the first who wait for it, or for any, and has not
-- asked since, is most likely gone too.
function queue.lapse(s)
  local process = string.sub(s[HOLDER], 1, 16)
  if not queue.end_offer(s[HOLDER], s[ID]) or process == '0000000000000000' then return end
  for _, name in ipairs({ s[ID], '%' }) do
    local first = call('ZRANGEBYLEX', LINE, '[' .. name .. ' ', '(' .. name .. '!', 'LIMIT', '0', SWEEP)
    for i = 1, #first do
      local mate = string.sub(first[i], -32)
      local card = string.sub(mate, 1, 16) == process and find(mate)
      if card and card.ends < s[ENDS] - OFFER + TICKET_LIFE then leave(mate) end
    end
  end
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
queue.head = head

-- How many slots there are that are or will be ready.
local function obtainable()
  arrange()
  local due = call('ZCOUNT', PLACES, FROM_DUE, BELOW_LAPSED)
  -- A script that died may have left a count that is out of date: where they are few, those that leave are counted.
  if pool[LEAVING] > 0 and due <= tonumber(SWEEP) then
    pool[LEAVING] = 0
    for _, id in ipairs(call('ZRANGEBYSCORE', PLACES, FROM_DUE, BELOW_LAPSED)) do
      local s = load(id)
      if s and (s[MODE] == 'r' or s[STATE] == 'l' and s[MODE] ~= 'e' and s[MODE] ~= 'p') then
        pool[LEAVING] = pool[LEAVING] + 1
      end
    end
  end
  return pool[CERTAIN] + pool[DOUBTFUL] + due - pool[LEAVING]
end
-- Lets those go who want more than can come back: others would wait behind them in vain.
local function pass_over()
  while true do
    local holder, card = head('%')
    if not holder or card.count <= pool[CERTAIN] + pool[DOUBTFUL] or card.count <= obtainable() then return end
    leave(holder)
  end
end
queue.pass_over = pass_over

-- Who grows older goes before those of higher priority who came so much later.
local function next_turn()
  local rank, arrival = 32767, math.max(now - ask[WAITED], 0)
  if ask[AGEING] == '0' then
    rank = rank - ask[PRIORITY]
  else
    arrival = math.min(math.max(arrival - ask[PRIORITY] * ask[AGEING], 0), 9007199254740992)
  end
  return format('%05d%016d', rank, arrival)
end
local function is_behind(name, turn)
  local first, card = head(name)
  return first and card.turn .. first < turn
end
queue.is_behind = is_behind
function queue.precedes(name, holder)
  local own = find(holder)
  local turn = own and own.ends > now and own.turn or next_turn()
  return is_behind(name, turn .. holder)
end
-- What is kept for it, and as many of these slots as it lacks for which nobody stands before it.
function queue.those_for(holder, slots, kept)
  pass_over()
  if queue.precedes('%', holder) then return {} end
  for i = 1, #slots do
    if #kept < ask[LEAST] and not queue.precedes(slots[i][ID], holder) then kept[#kept + 1] = slots[i] end
  end
  return kept
end
-- How many of these there are that are or will be ready: not those that are gone with their lease.
local function obtainable_of(ids)
  local count = 0
  for i = 1, #ids do
    local s = load(ids[i])
    if s and s[STATE] ~= 'o' and s[MODE] ~= 'p' and (s[STATE] ~= 'l' and s[MODE] ~= 'r' or s[MODE] == 'e') then
      count = count + 1
    end
  end
  return count
end
local function is_offered(s, holder)
  return s and s[STATE] == 'h' and s[HOLDER] == holder and s[ENDS] > now
end
queue.is_offered = is_offered
-- What is overdue is put back in its turn, whether or not its ticket is still there.
local function take_back(holder, ids)
  for _, id in ipairs(ids) do
    local s = load(id)
    if is_offered(s, holder) then
      settle(s)
    end
  end
end
-- With a ticket goes what is offered to it, or kept for it.
function queue.withdraw(holder)
  local card = leave(holder)
  if card then
    take_back(holder, card.ids)
    -- What it claimed may be claimed by those whose place it took, and what it kept them from by who has all else.
    if not card.offered then queue.steal_for_first(card.ids) end
  end
  return 'withdrawn'
end
-- Gives it a ticket, or says that it wants more than can be had.
function queue.enter(holder, names, way)
  local least, beyond = ask[LEAST] or 1, nil
  if way == 'any' then
    beyond = least > pool[CERTAIN] + pool[DOUBTFUL] and least > obtainable()
  else
    beyond = least > 1 and least > obtainable_of(names)
  end
  if beyond then
    queue.withdraw(holder)
    pool[WAITERS_UNTIL] = now + INTEREST
    return true
  end
  -- Without names it would be taken for one that takes any.
  if way ~= 'any' and not names[1] then return end
  if pool[WAITING] == 0 then
    pool[NAMERS] = MAX_TICKETS
    recount()
  end
  local card = find(holder)
  local ends = now + TICKET_LIFE
  local lapses = format('%d', WHEN_LAPSED + ends)
  if card and card.ends > now then
    card.ends = ends
    keep(holder, card)
    call('ZADD', PLACES, lapses, '%' .. holder)
    -- The script that made it may have died before this.
    stand(holder, card)
  else
    leave(holder)
    if pool[WAITING] >= MAX_TICKETS then return end
    local turn = next_turn()
    local any = not names[1]
    local card = { ends = ends, turn = turn, priority = ask[PRIORITY], steal = ask[STEAL], count = ask[LEAST] or 0,
      how = any and ask[STRATEGY] or 'random', offered = false, ids = names }
    -- Those that are ready are for others, but perhaps not all of them.
    if chooses(card) then touch(names) end
    keep(holder, card)
    stand(holder, card)
    call('ZADD', PLACES, lapses, '%' .. holder)
    pool[WAITING] = pool[WAITING] + 1
    if not any then pool[NAMERS] = pool[NAMERS] + 1 end
  end
  local keep_for = format('%d', (TICKET_LIFE + LANE_GRACE) / 1000)
  call('PEXPIRE', LINE, keep_for)
  call('PEXPIRE', TICKETS, keep_for)
end

-- A slot is offered no more, and so is nothing else of its offer.
function queue.break_offer(s)
  local ids = queue.end_offer(s[HOLDER], s[ID])
  if not ids then return end
  local others = {}
  for _, id in ipairs(ids) do
    if id ~= s[ID] then others[#others + 1] = id end
  end
  take_back(s[HOLDER], others)
end
-- Whoever is first in line now for one of these names, which others wanted before, or for any slot.
function queue.steal_for_first(ids)
  local looked = {}
  for i = 1, #ids + 1 do
    local first, waits = head(ids[i] or '%')
    -- Each looks at all that it wants, may be first for many of them, and finds the same until another claims or lets go.
    if first and waits.steal ~= '-' and not looked[first] then
      local before = stealing('stirred')
      stealing('steal')(first)
      if stealing('stirred') ~= before then looked = {} end
      looked[first] = true
    end
  end
end
-- Whether others may claim more once it is served: what it claimed, or was first for besides what it was granted.
local function holds_off(card)
  return card and (card.steal ~= '-' or card.ids[2])
end
-- Who was granted what it asks for leaves its lines.
function queue.depart(holder)
  local card = leave(holder)
  if holds_off(card) then queue.steal_for_first(card.ids) end
end
-- Grants what was kept for a ticket, which goes.
function queue.grant_kept(holder, slots)
  local card = leave(holder)
  local answer, ids = grant(holder, #slots, slots), {}
  for i = 1, #slots do ids[i] = slots[i][ID] end
  queue.steal_for_first(holds_off(card) and card.ids or ids)
  return answer
end
function queue.accept(holder)
  local card = find(holder)
  if not card or not card.offered then return nil end
  drop(holder)
  local found = {}
  for _, id in ipairs(card.ids) do
    local s = load(id)
    if is_offered(s, holder) then found[#found + 1] = s end
  end
  if #found == #card.ids then
    return queue.grant_kept(holder, found)
  end
  take_back(holder, card.ids)
  return nil
end
function queue.sweep()
  local lapsed = call('ZRANGEBYSCORE', PLACES, FROM_LAPSED, format('%d', WHEN_LAPSED + now), 'LIMIT', '0',
    SWEEP)
  for i = 1, #lapsed do
    if not leave(string.sub(lapsed[i], 2)) then
      call('ZREM', PLACES, lapsed[i])
      recount()
      -- None of the others has a ticket either, and nobody would look for them.
      if pool[WAITING] == 0 then return call('ZREMRANGEBYSCORE', PLACES, FROM_LAPSED, '(+inf') end
    end
  end
end
function queue.clear()
  call('DEL', LINE, TICKETS)
  call('ZREMRANGEBYSCORE', PLACES, FROM_LAPSED, '(+inf')
  cards, pool[WAITING], pool[NAMERS] = {}, 0, 0
end

-- What is ready is offered to the first in line.
local function keep_for(holder, s)
  local ends = now + OFFER
  s[HOLDER], s[ENDS] = holder, ends
  put(s, 'h', format('%d', WHEN_DUE + ends))
end
local function offer(holder, card, slots)
  stand_aside(holder, card)
  local several = chooses(card) and card.ids
  if several then touch(several) end
  local ids = {}
  for i = 1, #slots do ids[i] = slots[i][ID] end
  card.offered, card.ids = true, ids
  keep(holder, card)
  called = called .. ' ' .. holder
  -- Of several that it might have had the others are left to those behind it.
  if several then queue.steal_for_first(several) end
end
-- Keeps for a ticket what is there of its names until that is enough: see core/src/slots/offer.rs.
local function gather(holder, card)
  local ids, kept = card.ids, {}
  if obtainable_of(ids) < card.count then
    queue.withdraw(holder)
    return nil
  end
  for i = 1, #ids do
    local s = load(ids[i])
    if is_offered(s, holder) and #kept < card.count then kept[#kept + 1] = s end
  end
  -- Those in doubt after the others.
  for doubtful = 0, 1 do
    for i = 1, #ids do
      local s = #kept < card.count and load(ids[i])
      if s and s[STATE] == 'r' and (s[KIND] == 'd') == (doubtful == 1) and head(ids[i]) == holder then
        keep_for(holder, s)
        kept[#kept + 1] = s
      end
    end
  end
  return #kept == card.count and kept
end
local judged -- who was found not to be served, and how much had been touched then
local looked -- how much had been touched as a name was looked at, if nothing came of that
local function serve_name(name)
  local holder, card = head(name)
  if not holder or judged[holder] == #touched then return end
  local slots, ids, free = {}, card.ids, true
  if chooses(card) then
    local s = load(name)
    if not s or s[STATE] ~= 'r' then return end
    if is_behind('%', card.turn .. holder) then
      passed[#passed + 1], looked[name] = name, nil
      return
    end
    slots = gather(holder, card)
    free = slots
  else
    for i = 1, #ids do
      slots[i] = load(ids[i]) or false
      free = free and (not slots[i] or slots[i][STATE] == 'r')
      if not free then break end
    end
    free = free and total() + #ids <= MAX_SLOTS
    for i = 1, #ids do
      free = free and head(ids[i]) == holder
      if not free then break end
    end
  end
  if not free then
    judged[holder] = #touched
    return
  end
  for i = 1, #slots do
    slots[i] = slots[i] or load(ids[i], false, 'p')
    keep_for(holder, slots[i])
  end
  offer(holder, card, slots)
end
function queue.serve_names()
  -- Who stood before them may have been served since.
  touch(passed)
  passed = {}
  repeat
    -- One that many wait for is looked at once, unless something came free since.
    local at = 1
    judged, looked = {}, {}
    while touched[at] do
      local id = touched[at]
      if looked[id] ~= #touched then
        looked[id] = #touched
        serve_name(id)
      end
      at = at + 1
    end
    touched = {}
    if pool[CERTAIN] + pool[DOUBTFUL] == 0 then return end
    pass_over()
    if moved then
      moved = false
      -- Those that may serve somebody now: many may wait for the same, of which few are there.
      for _, entry in ipairs(call('ZRANGEBYLEX', LINE, '[%% ', '(%%!')) do
        local card = find(string.sub(entry, -32))
        for _, id in ipairs(card and card.ids or {}) do
          local s = load(id)
          if not s or s[STATE] == 'r' then touched[#touched + 1] = id end
        end
      end
    end
  until not touched[1]
end
-- Whether the first who takes any slot was offered some, or was to be, but the counts were wrong.
local function serve_first()
  local holder, card = head('%')
  if not holder or pool[CERTAIN] + pool[DOUBTFUL] < card.count then return false end
  local slots = {}
  for i = 1, card.count do
    local s = draw('pick')(card.how, card.count - i + 1)
    if not s then
      for at = 1, i - 1 do settle(slots[at]) end
      return true
    end
    keep_for(holder, s)
    slots[i] = s
  end
  offer(holder, card, slots)
  return true
end
queue.serve_first = serve_first
function queue.serve()
  repeat
    queue.serve_names()
  until pool[CERTAIN] + pool[DOUBTFUL] == 0 or not serve_first()
end

return queue[name]
end
end

