-- What a script finds when it starts: `process`, `args`, and modules found beside it.
-- Returns a function that takes the command line and returns the exit status.

local uv = require('luv')
package.loaded.uv = uv
local core = require('core')

local process = core.Emitter:new()
process.pid = uv.getpid()
_G.process = process
package.loaded.process = process

function process.exit(code)
  io.stdout:flush()
  os.exit(code or 0)
end

-- A script that listens for a signal has it; otherwise SIGTERM and SIGINT end the loop.
local function watch(name)
  local signal = uv.new_signal()
  uv.signal_start(signal, name, function()
    if process:listenerCount(name) > 0 then
      process:emit(name)
    else
      uv.stop()
    end
  end)
  uv.unref(signal)
end

local function complain(message)
  io.stderr:write(message, '\n')
  return 1
end

return function(program, script, ...)
  local arguments = { [0] = program, script, ... }
  process.argv = arguments
  _G.args = arguments
  _G.arg = { [-1] = program, [0] = script, ... }

  local folder = script:match('^(.*)/[^/]*$') or '.'
  package.path = folder .. '/?.lua;' .. folder .. '/?/init.lua;' .. package.path

  local chunk, problem = loadfile(script)
  if not chunk then
    return complain(problem)
  end
  watch('sigterm')
  watch('sigint')
  local ok, trace = xpcall(chunk, debug.traceback, ...)
  if not ok then
    return complain(trace)
  end
  uv.run()
  return 0
end
