-- The releases come first: their records are read together.
if args[cursor + 1] == 'release' and args[cursor + 7] == 'release' then
  local ids, next = {}, cursor + 1
  while args[next] == 'release' and #ids < CHUNK do
    ids[#ids + 1] = args[next + 1]
    next = next + 6
  end
  local packed = call('HMGET', SLOTS, unpack(ids))
  for i = 1, #ids do load(ids[i], packed[i]) end
end

local lines, said = { '', nil }, 1
while cursor < words do
  local at, name, answer = cursor, args[cursor + 1], nil
