-- A release alone or a claim alone that is granted, while nobody waits and nothing is due, asks for little of what
-- follows: that is not made then.
local alone, draws = false, true
if pool[WAITING] == 0 and now < pool[DUE] then
  local name, way = args[cursor + 1], args[cursor + 7]
  if name == 'release' then
    alone, draws = words == cursor + 6, words ~= cursor + 6
  elseif name == 'claim' and way == 'named' and words == cursor + 9 and pool[ROOM] > 0 then
    local s = load(args[words])
    alone = not s or s[STATE] == 'r'
    draws = not alone
  elseif name == 'claim' and way == 'any' and words == cursor + 10 then
    alone = pool[CERTAIN] + pool[DOUBTFUL] >= args[cursor + 9] + 0
  end
end

if draws then
