-- Nonces and amounts, as decimal text: by length, then by text.
local function less(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end
