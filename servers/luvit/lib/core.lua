-- Object and Emitter, with the names of luvit's `core`.

local Object = {}
Object.meta = { __index = Object }

function Object:new(...)
  local object = setmetatable({}, self.meta)
  if object.initialize then
    object:initialize(...)
  end
  return object
end

function Object:extend()
  local class = setmetatable({}, self.meta)
  class.meta = { __index = class }
  return class
end

local Emitter = Object:extend()

-- A list of listeners is never changed in place: `emit` may be walking it.
function Emitter:on(name, callback)
  local handlers = rawget(self, 'handlers')
  if not handlers then
    handlers = {}
    self.handlers = handlers
  end
  local list = {}
  for i, listener in ipairs(handlers[name] or {}) do
    list[i] = listener
  end
  list[#list + 1] = callback
  handlers[name] = list
  return self
end

function Emitter:once(name, callback)
  local function wrapper(...)
    self:removeListener(name, wrapper)
    return callback(...)
  end
  return self:on(name, wrapper)
end

function Emitter:removeListener(name, callback)
  local list = {}
  for _, listener in ipairs(self:listeners(name)) do
    if listener ~= callback then
      list[#list + 1] = listener
    end
  end
  if rawget(self, 'handlers') then
    self.handlers[name] = list
  end
  return self
end

function Emitter:removeAllListeners(name)
  if not name then
    self.handlers = nil
  elseif rawget(self, 'handlers') then
    self.handlers[name] = nil
  end
  return self
end

function Emitter:listeners(name)
  local handlers = rawget(self, 'handlers')
  return handlers and handlers[name] or {}
end

function Emitter:listenerCount(name)
  return #self:listeners(name)
end

function Emitter:emit(name, ...)
  local list = self:listeners(name)
  for i = 1, #list do
    list[i](...)
  end
  return self
end

return { Object = Object, Emitter = Emitter }
