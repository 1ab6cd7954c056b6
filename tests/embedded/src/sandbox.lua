-- The world that a script sees: the globals that Redis 7.0 gives it, all read-only, and an error for any other
-- name. Plain Lua 5.1 has no read-only tables, so empty tables stand in front of the real ones.
local where, text_of, tools = ...
local error, getmetatable, pcall, rawset, select, setmetatable, tostring, type, xpcall =
  error, getmetatable, pcall, rawset, select, setmetatable, tostring, type, xpcall

local guarded = {}

local function refuse()
  error("Attempt to modify a readonly table", 2)
end

local function guard(table)
  local front = setmetatable({}, { __index = table, __newindex = refuse, __metatable = false })
  guarded[front] = true
  return front
end

-- The error of a command is caught as text: so Redis has it for older scripts.
local function unwrap(ok, first, ...)
  if not ok then
    return false, text_of(first) or first
  end
  return ok, first, ...
end

-- What may fail is not written here: a tail call to a Lua function would hide the line of the script from the error.
local redis = {
  call = tools.call, pcall = tools.pcall, sha1hex = tools.sha1hex, log = tools.log, setresp = tools.setresp,
  status_reply = function(...)
    if select("#", ...) ~= 1 or type((...)) ~= "string" then
      return { err = "ERR wrong number or type of arguments" }
    end
    return { ok = (...) }
  end,
  error_reply = function(...)
    if select("#", ...) ~= 1 or type((...)) ~= "string" then
      return { err = "ERR wrong number or type of arguments" }
    end
    local text = (...):gsub("^%-", "")
    if not text:find(" ", 1, true) then
      text = "ERR " .. text
    end
    return { err = text }
  end,
  replicate_commands = function() return true end,
  set_repl = function() end,
  LOG_DEBUG = 0, LOG_VERBOSE = 1, LOG_NOTICE = 2, LOG_WARNING = 3,
  REPL_NONE = 0, REPL_AOF = 1, REPL_SLAVE = 2, REPL_REPLICA = 2, REPL_ALL = 3,
  REDIS_VERSION = tools.version, REDIS_VERSION_NUM = tools.version_number,
}

local mathematics = {}
for name, value in pairs(math) do
  mathematics[name] = value
end
mathematics.random = tools.random
mathematics.randomseed = tools.randomseed

local strings = {}
for name, value in pairs(string) do
  strings[name] = value
end
getmetatable("").__index = guard(strings)
getmetatable("").__metatable = false

local globals = {
  _VERSION = _VERSION, assert = assert, collectgarbage = collectgarbage, error = error, gcinfo = gcinfo,
  getmetatable = getmetatable, ipairs = ipairs, next = next, pairs = pairs, rawequal = rawequal, rawget = rawget,
  select = select, setmetatable = setmetatable, tonumber = tonumber, tostring = tostring, type = type,
  unpack = unpack, xpcall = xpcall,
  coroutine = guard(coroutine), math = guard(mathematics), redis = guard(redis), string = guard(strings),
  struct = guard({ pack = tools.pack, unpack = tools.unpack }), table = guard(table),
  pcall = function(...) return unwrap(pcall(...)) end,
  rawset = function(table, name, value)
    if guarded[table] then
      error("Attempt to modify a readonly table", 2)
    end
    return rawset(table, name, value)
  end,
}
setmetatable(globals, {
  __index = function(_, name)
    error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
  end,
})
globals._G = guard(globals)

-- Gives the text of an error and the line of the script, while the stack still stands.
local function explain(failure)
  local text = text_of(failure)
  if not text then
    text = type(failure) == "table" and "ERR unknown error" or "ERR " .. tostring(failure)
  end
  return { err = text, line = where() }
end

local function run(script)
  return xpcall(script, explain)
end

return globals, globals._G, run
