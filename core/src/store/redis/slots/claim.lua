-- What the last claim of any slot asked for: those that follow may ask for the same.
local ttl, max_hold, wait, priority, ageing, waited, strategy, least, most

local function grant(line, s, holder)
  leave_queue(s)
  if s.epoch ~= epoch then
    if s.kind ~= 'u' then s.kind = 'd' end
    s.epoch = epoch
  end
  top = max(now, top + 1)
  local ends = now + ttl
  if max_hold == 0 then
    s.hold = 0
  else
    s.hold = now + max_hold
    ends = min(ends, s.hold)
  end
  s.state, s.fence, s.holder, s.since, s.ends = 'l', top, holder, now, ends
  move(s, format('%d', WHEN_DUE + ends))
  save(s)
  return format('%s %s %d %d %s %s', line, s.id, top, ends, s.kind, s.floor)
end
local line
-- Who is refused waits in the lines of these names, in that of any slot if there are none, or without a ticket.
local function refuse(why, earliest, holder, names)
  if wait then
    if names and why == 'exhausted' then line('enter')(holder, names) else waiters_until = now + INTEREST end
  end
  return 'refused ' .. why .. (earliest and format(' %d', earliest) or ' -')
end
local function quiet_until()
  return lost_at == 0 and 0 or lost_at + longest + doubt_rest
end
-- A script that dies between two writes, because a right was taken away, leaves a slot elsewhere than its record says,
-- and counts that are out of date: all are counted anew, and the slot is put right as it is found.
local function count_ready()
  arrange()
  certain = call('ZCOUNT', PLACES, '-inf', format('(%d', DOUBT * QUEUE))
  doubtful = call('ZCOUNT', PLACES, format('%d', DOUBT * QUEUE), format('(%d', WHEN_DUE))
end
local function mend(id, s)
  arrange()
  if s and (s.state == 'l' or s.state == 'h' or s.state == 'c') then
    call('ZADD', PLACES, format('%d', WHEN_DUE + s.ends), id)
  elseif id then
    call('ZREM', PLACES, id)
  end
  count_ready()
  -- Nothing was moved, perhaps, and ranks have changed all the same; nor is it sure how heavy slots are.
  taken, ranked, heaviest = {}, nil, DOUBT - 1
end
-- What a claim is told before anything is looked for.
local function at_once(holder)
  if lost_at ~= 0 and quiet_until() > now then return refuse('quiet', quiet_until()) end
  return tickets > 0 and line('accept')(holder)
end
local claim
function claim(holder)
  local answer = at_once(holder)
  if answer then return answer end
  if tickets > 0 then line('pass_over')() end
  if certain + doubtful < least then
    arrange()
    if call('ZCOUNT', PLACES, '-inf', format('(%d', WHEN_DUE)) ~= certain + doubtful then count_ready() end
  end
  local ready = certain + doubtful
  if ready < least or tickets > 0 and line('precedes')('%', holder) then
    arrange()
    local due = call('ZRANGEBYSCORE', PLACES, format('%d', WHEN_DUE), format('(%d', WHEN_LAPSED), 'WITHSCORES', 'LIMIT',
      '0', '1')[2]
    return refuse(total() == 0 and 'noslot' or 'exhausted', due and tonumber(due) - WHEN_DUE, holder, {})
  end
  local said, lines, given = 'granted 1', nil, nil
  if most > 1 and ready > 1 then said, lines, given = 'granted ' .. min(most, ready), {}, {} end
  for i = 1, min(most, ready) do
    local id = pick(strategy)
    local s = id and load(id)
    if not s or s.state ~= 'r' then
      mend(id, s)
      -- Nobody hears of what was granted before.
      for at = 1, i - 1 do make_ready(given[at]) end
      return claim(holder)
    end
    said = grant(said, s, holder)
    if lines then lines[i], given[i], said = said, s, '' end
  end
  if tickets > 0 then line('leave')(holder) end
  return lines and concat(lines) or said
end

local function grant_all(found, holder)
  local lines = { 'granted ' .. #found }
  for i = 1, #found do lines[i + 1] = grant('', found[i], holder) end
  return concat(lines)
end
local function blank(id, mode, weight)
  local s = { id = id, mode = mode, state = 'o', weight = weight, epoch = 0, fence = 0, holder = '0', since = 0,
    ends = 0, hold = 0, rest = 0, barred = 0, kind = 'u', floor = '-', raised = 0 }
  records[id] = s
  return s
end
