-- Timers, with the names of luvit's `timer`. An interval is in milliseconds.

local uv = require('luv')

local function start(delay, interval, callback, ...)
  local timer = uv.new_timer()
  local arguments, count = { ... }, select('#', ...)
  uv.timer_start(timer, delay, interval, function()
    if interval == 0 then
      uv.close(timer)
    end
    callback(unpack(arguments, 1, count))
  end)
  return timer
end

local function clear(timer)
  if timer and not uv.is_closing(timer) then
    uv.close(timer)
  end
end

return {
  setTimeout = function(delay, callback, ...)
    return start(delay, 0, callback, ...)
  end,
  setInterval = function(interval, callback, ...)
    return start(interval, interval, callback, ...)
  end,
  setImmediate = function(callback, ...)
    return start(0, 0, callback, ...)
  end,
  clearTimeout = clear,
  clearInterval = clear,
  clearTimer = clear,
}
