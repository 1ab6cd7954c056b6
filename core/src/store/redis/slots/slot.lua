-- A slot's record, as a list: its id, whether it is to be written, and what is kept. RANK is the holder's priority,
-- CLAIMANT the ticket that wants to have the lease, or '', and AGREED when the lease ends without it.
local SLOT = '<c1c1c1dddddddddddsss'
local ID, CHANGED, MODE, STATE, KIND, WEIGHT, MARK, FENCE, SINCE, ENDS = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
local HOLD, REST, BARRED, RAISED, RANK, AGREED, HOLDER, FLOOR, CLAIMANT = 11, 12, 13, 14, 15, 16, 17, 18, 19

-- What this envelope has read (false: it is not there); how many slots there are, once that was asked for.
local records, all = {}, nil
-- A slot that is not there (`packed` is false if that is known) is made, if a mode is given for it.
local function load(id, packed, mode)
  local s = records[id]
  if s then return s end
  if packed == nil and s == nil then packed = call('HGET', SLOTS, id) end
  if packed then
    s = { id, false, struct.unpack(SLOT, packed) }
  elseif mode then
    s = { id, false, mode, 'o', 'u', 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '0', '-', '' }
    if all then all = all + 1 end
    pool[ROOM] = pool[ROOM] - 1
  else
    records[id] = false
    return nil
  end
  records[id] = s
  return s
end
