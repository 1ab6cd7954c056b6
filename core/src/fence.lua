-- Admits a writer to a resource unless one with a higher fence was there before.
-- KEYS[1]: where the resource's highest fence is kept; ARGV[1]: the writer's fence, as decimal text.
-- 1: admitted, and the fence is recorded; 0: refused, nothing was changed. Writes of your own go before the last line.
-- Fences are compared as text, by length first: no number is formatted or rounded on the way.
local function lower(one, other)
  return #one < #other or #one == #other and one < other
end
local function is_fence(text)
  return string.find(text, '^[1-9]%d*$') and not lower('9007199254740991', text)
end
local fence, highest = ARGV[1], redis.call('GET', KEYS[1])
if not is_fence(fence) then
  return redis.error_reply('ERR fence: must be a whole number from 1 to 2^53 - 1, as decimal text')
end
if highest and not is_fence(highest) then
  return redis.error_reply('ERR the key of the fence holds something else: give it a key of its own')
end
if highest and lower(fence, highest) then
  return 0
end
redis.call('SET', KEYS[1], fence)
return 1
