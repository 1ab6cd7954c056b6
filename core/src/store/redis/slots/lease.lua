-- The slot of a live lease, or why it is not held.
local function held(id, fence)
  local s = load(id)
  if not s then return nil, 'lost gone' end
  local current = s.fence
  if current > fence then return nil, 'lost taken' end
  if current < fence then return nil, 'lost forgotten' end
  if s.state ~= 'l' then return nil, 'lost ended' end
  if s.ends <= now then return nil, 'lost expired' end
  return s
end

-- Nonces, as decimal text: by length, then by text.
local function less(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end
local function release(id, fence, cooldown, outcome, value)
  local s, loss = held(id, fence)
  if not s then return loss end
  local kind, after = s.kind, s.floor
  if outcome == 'used' then
    if kind == 'k' and not less(after, value) or after ~= '-' and less(value, after) then
      return 'backwards ' .. kind .. ' ' .. after
    end
    kind, after = 'k', value
  elseif outcome == 'unsettled' then
    if kind ~= 'u' then kind = 'd' end
  elseif outcome == 'rejected' and value ~= '-' and (after == '-' or not less(value, after)) then
    kind, after = 'k', value
  elseif outcome ~= 'unused' then
    kind = 'd'
  end
  if after ~= s.floor then s.raised = now end
  s.kind, s.floor = kind, after
  s.rest = max(s.rest, now + cooldown)
  settle(s, now)
  return 'released'
end
