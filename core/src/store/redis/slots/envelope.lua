-- The releases come first: their records are read together.
if ARGV[cursor + 1] == 'release' and ARGV[cursor + 7] == 'release' then
  local ids, next = {}, cursor + 1
  while ARGV[next] == 'release' and #ids < CHUNK do
    ids[#ids + 1] = ARGV[next + 1]
    next = next + 6
  end
  local packed = call('HMGET', SLOTS, unpack(ids))
  for i = 1, #ids do load(ids[i], packed[i]) end
end

-- Nonces, as decimal text: by length, then by text.
local function less(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end

local lines, said = { '' }, 1
while cursor < words do
  local at, name, answer = cursor, ARGV[cursor + 1], nil
