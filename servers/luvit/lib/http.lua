-- The http module, in luvit's manner. The connection module (in C) parses, frames and sends; here
-- are the objects that a handler sees.

local ffi = require('ffi')
local uv = require('luv')
local connection = require('luvit.connection')
local Emitter = require('core').Emitter

ffi.cdef([[
struct connection;
int luvit_set(struct connection *c, const char *name, size_t name_length, const char *value,
              size_t value_length);
int luvit_set_number(struct connection *c, const char *name, size_t name_length, double value);
int luvit_get(struct connection *c, const char *name, size_t name_length, char *to, size_t size);
void luvit_remove(struct connection *c, const char *name, size_t name_length);
void luvit_remove_all(struct connection *c);
void luvit_no_date(struct connection *c);
int luvit_head(struct connection *c, int status, const char *line, size_t line_length);
int luvit_body(struct connection *c, const char *data, size_t length);
int luvit_finish(struct connection *c, int status, const char *line, size_t line_length,
                 const char *data, size_t length);
]])

local C = ffi.C
local RESUME, FULL, TOO_LONG = 1, 2, 4
local QUEUE_MAX = 64 * 1024 -- body bytes kept for a handler that does not take them yet
local LINGER_MS = 1000
local SWEEP_MS = 5000 -- how often stale connections are looked for
local BACKLOG = 65535 -- the kernel cuts it to net.core.somaxconn

local methods = { [0] = 'DELETE', 'GET', 'HEAD', 'POST', 'PUT', 'CONNECT', 'OPTIONS', 'TRACE',
  'COPY', 'LOCK', 'MKCOL', 'MOVE', 'PROPFIND', 'PROPPATCH', 'SEARCH', 'UNLOCK', 'BIND', 'REBIND',
  'UNBIND', 'ACL', 'REPORT', 'MKACTIVITY', 'CHECKOUT', 'MERGE', 'M-SEARCH', 'NOTIFY', 'SUBSCRIBE',
  'UNSUBSCRIBE', 'PATCH', 'PURGE', 'MKCALENDAR', 'LINK', 'UNLINK', 'SOURCE' }

local reasons = {
  [200] = 'OK', [201] = 'Created', [202] = 'Accepted', [203] = 'Non-Authoritative Information',
  [204] = 'No Content', [205] = 'Reset Content', [206] = 'Partial Content',
  [300] = 'Multiple Choices', [301] = 'Moved Permanently', [302] = 'Found', [303] = 'See Other',
  [304] = 'Not Modified', [307] = 'Temporary Redirect', [308] = 'Permanent Redirect',
  [400] = 'Bad Request', [401] = 'Unauthorized', [402] = 'Payment Required', [403] = 'Forbidden',
  [404] = 'Not Found', [405] = 'Method Not Allowed', [406] = 'Not Acceptable',
  [407] = 'Proxy Authentication Required', [408] = 'Request Timeout', [409] = 'Conflict',
  [410] = 'Gone', [411] = 'Length Required', [412] = 'Precondition Failed',
  [413] = 'Content Too Large', [414] = 'URI Too Long', [415] = 'Unsupported Media Type',
  [416] = 'Range Not Satisfiable', [417] = 'Expectation Failed', [421] = 'Misdirected Request',
  [422] = 'Unprocessable Content', [426] = 'Upgrade Required', [428] = 'Precondition Required',
  [429] = 'Too Many Requests', [431] = 'Request Header Fields Too Large',
  [500] = 'Internal Server Error', [501] = 'Not Implemented', [502] = 'Bad Gateway',
  [503] = 'Service Unavailable', [504] = 'Gateway Timeout', [505] = 'HTTP Version Not Supported',
}

local lines = {}
for status, reason in pairs(reasons) do
  lines[status] = 'HTTP/1.1 ' .. status .. ' ' .. reason .. '\r\n'
end

-- RFC 9112 4: three digits and a space, even with no reason after it. 1xx is not a final answer.
local function status_line(status)
  if type(status) ~= 'number' or status < 200 or status > 999 or status % 1 ~= 0 then
    error('bad status code: ' .. tostring(status), 3)
  end
  return 'HTTP/1.1 ' .. status .. ' \r\n'
end

-- Work that must not run inside the handler that caused it waits for the loop's next turn.

local ready = {}
local idle
local run_ready

local function schedule(socket)
  if socket._scheduled then
    return
  end
  socket._scheduled = true
  ready[#ready + 1] = socket
  if #ready == 1 then
    idle = idle or uv.new_idle()
    uv.idle_start(idle, run_ready)
  end
end

-- The request

local IncomingMessage = Emitter:extend()

-- RFC 9110 5.3: lines of one name are one list; cookies are joined as RFC 6265 5.4 has them. The
-- last Host is the one that counts (RFC 9112 3.2.2).
local header_meta = {
  __index = function(headers, name)
    if type(name) == 'string' then
      return rawget(headers, name:lower())
    end
  end,
}

local function parse_headers(text)
  local headers = setmetatable({}, header_meta)
  for name, value in text:gmatch('([^%z]+)%z([^%z]*)%z') do
    local old = rawget(headers, name)
    if old and name ~= 'host' then
      value = old .. (name == 'cookie' and '; ' or ', ') .. value
    end
    headers[name] = value
  end
  return headers
end

-- What most requests have alike stands here and not in each: a table of four fields is made in one
-- step, and a fifth would make it grow.
local function request_meta(version, complete)
  return {
    __index = function(self, key)
      if key == 'headers' then
        local headers = parse_headers(self._head)
        self.headers = headers
        return headers
      elseif key == 'httpVersion' then
        return version
      elseif key == 'complete' then
        return complete
      end
      return IncomingMessage[key]
    end,
  }
end

local with_body = { [0] = request_meta('1.0', false), request_meta('1.1', false) }
local without_body = { [0] = request_meta('1.0', true), request_meta('1.1', true) }

local function is_wanted(req)
  return req:listenerCount('data') > 0 or req:listenerCount('end') > 0
end

-- Hands over what waits, and then the end, if the handler wants them now.
local function flow(req)
  local queue = req._queue
  if queue and not is_wanted(req) then
    return
  end
  while queue and queue[1] and not req._paused do
    local chunk = table.remove(queue, 1)
    req._queued = req._queued - #chunk
    req:emit('data', chunk)
  end
  if req._paused or (queue and queue[1]) then
    return
  end
  req._queue = nil
  if req._held and req.socket._conn then
    req._held = nil
    connection.hold(req.socket._pointer, false)
  end
  if req.complete and not req._ended and is_wanted(req) then
    req._ended = true
    req:emit('end')
  end
end

-- Whoever listens later finds what has come so far.
function IncomingMessage:on(name, callback)
  Emitter.on(self, name, callback)
  if (name == 'data' or name == 'end') and (self._queue or self.complete) then
    self._flow = true
    schedule(self.socket)
  end
  return self
end

function IncomingMessage:pause()
  self._paused = true
  if not self.complete and self.socket._conn then
    self._held = true
    connection.hold(self.socket._pointer, true)
  end
end

function IncomingMessage:resume()
  self._paused = nil
  self._flow = true
  schedule(self.socket)
end

-- The reply is finished: a body that nobody has listened for so far is not kept for later.
local function drop_body(req)
  if req._queue and not is_wanted(req) then
    req._queue = nil
    req._flow = true
    schedule(req.socket)
  end
end

-- The response

local ServerResponse = Emitter:extend()
ServerResponse.statusCode = 200
ServerResponse.sendDate = true

local function check_open(self)
  if self.headersSent then
    error('headers already sent', 3)
  end
end

function ServerResponse:setHeader(name, value)
  check_open(self)
  local conn = self._conn
  if not conn then
    return
  end
  local ok
  if type(value) == 'number' then
    ok = C.luvit_set_number(conn, name, #name, value)
  else
    if type(value) ~= 'string' then
      value = tostring(value)
    end
    ok = C.luvit_set(conn, name, #name, value, #value)
  end
  if ok == 0 then
    error('bad header: ' .. tostring(name), 2)
  end
end

function ServerResponse:getHeader(name)
  check_open(self)
  if not self._conn then
    return nil
  end
  local size = 256
  while true do
    local to = ffi.new('char[?]', size)
    local length = C.luvit_get(self._conn, name, #name, to, size)
    if length < 0 then
      return nil
    elseif length < size then
      return ffi.string(to, length)
    end
    size = length + 1
  end
end

function ServerResponse:removeHeader(name)
  check_open(self)
  if self._conn then
    C.luvit_remove(self._conn, name, #name)
  end
end

-- Replaces all headers set so far, as luvit has it. `headers` is a map, or a list of pairs.
function ServerResponse:writeHead(status, headers)
  check_open(self)
  self.statusCode = status
  if self._conn then
    C.luvit_remove_all(self._conn)
  end
  for name, value in pairs(headers or {}) do
    if type(name) == 'number' then
      name, value = value[1], value[2]
    end
    self:setHeader(name, value)
  end
end

function ServerResponse:flushHeaders()
  local conn = self._conn
  if self.headersSent or not conn then
    return
  end
  local status = self.statusCode
  local line = lines[status] or status_line(status)
  self.headersSent = true
  if not self.sendDate then
    C.luvit_no_date(conn)
  end
  if C.luvit_head(conn, status, line, #line) % 2 == RESUME then
    schedule(self.socket)
  end
end

-- Returns false when the client is slow to read: wait for `drain`.
function ServerResponse:write(chunk)
  local conn = self._conn
  if not conn then
    return false
  elseif self.finished then
    error('write after finish', 2)
  end
  if not self.headersSent then
    self:flushHeaders()
  end
  local next = C.luvit_body(conn, chunk, #chunk)
  if next == TOO_LONG then
    error('more body than Content-Length', 2)
  end
  if next % 2 == RESUME then
    schedule(self.socket)
  end
  return next < FULL
end

function ServerResponse:finish(chunk)
  local conn = self._conn
  if self.finished or not conn then
    return
  end
  local status = self.statusCode
  local line = lines[status] or status_line(status)
  if not self.sendDate then
    C.luvit_no_date(conn)
  end
  chunk = chunk or ''
  local next = C.luvit_finish(conn, status, line, #line, chunk, #chunk)
  if next == TOO_LONG then
    error('more body than Content-Length', 2)
  end
  self.headersSent = true
  self.finished = true
  drop_body(self.socket._req)
  if next % 2 == RESUME then
    schedule(self.socket)
  end
  if self.handlers then
    self:emit('finish')
  end
end

-- `res.headers[name]` reads and sets as getHeader and setHeader do.
local headers_meta = {
  __index = function(self, name)
    return rawget(self, 1):getHeader(name)
  end,
  __newindex = function(self, name, value)
    local res = rawget(self, 1)
    if value == nil then
      res:removeHeader(name)
    else
      res:setHeader(name, value)
    end
  end,
}

local response_meta = {
  __index = function(self, key)
    if key == 'headers' then
      return setmetatable({ self }, headers_meta)
    end
    return ServerResponse[key]
  end,
}

-- The connection

local Socket = Emitter:extend()

function Socket:destroy()
  if self._conn then
    connection.close(self._pointer)
  end
end

function Socket:address()
  return uv.tcp_getpeername(self._handle)
end

function Socket:getsockname()
  return uv.tcp_getsockname(self._handle)
end

function Socket:nodelay(enable)
  return uv.tcp_nodelay(self._handle, enable)
end

function Socket:keepalive(enable, delay)
  return uv.tcp_keepalive(self._handle, enable, delay)
end

run_ready = function()
  local list = ready
  ready = {}
  uv.idle_stop(idle)
  for i = 1, #list do
    local socket = list[i]
    socket._scheduled = nil
    local req = socket._req
    local ok, trace = true, nil
    if req and req._flow then
      req._flow = nil
      ok, trace = xpcall(flow, debug.traceback, req)
    end
    if not ok then
      io.stderr:write(trace, '\n')
    end
    if socket._conn and not ok then
      connection.fail(socket._pointer)
    elseif socket._conn then
      connection.resume(socket._pointer)
    end
  end
end

-- One timer for all connections, which keeps nobody waiting: it does not hold the loop.
local sockets = {}
local sweeper

local function sweep()
  for socket in pairs(sockets) do
    if connection.is_stale(socket._pointer) then
      socket:destroy()
    end
  end
end

local function watch(socket)
  sockets[socket] = true
  if not sweeper then
    sweeper = uv.new_timer()
    uv.timer_start(sweeper, SWEEP_MS, SWEEP_MS, sweep)
    uv.unref(sweeper)
  end
end

-- What the connection module calls

local callbacks = {}

function callbacks.request(socket, method, url, head, minor, ended)
  local req = setmetatable({
    method = methods[method],
    url = url,
    socket = socket,
    _head = head,
  }, (ended and without_body or with_body)[minor])
  local res = setmetatable({
    socket = socket,
    _conn = socket._conn,
    headersSent = false,
    finished = false,
  }, response_meta)
  socket._req = req
  socket._res = res
  if url == '*' and req.method == 'OPTIONS' then
    res:writeHead(204) -- RFC 9110 9.3.7: asks for the server, not for anything that it serves
    return res:finish()
  end
  socket._onRequest(req, res)
  if ended and req.handlers then
    flow(req)
  end
end

function callbacks.data(socket, chunk)
  local req = socket._req
  if is_wanted(req) and not req._paused and not req._queue then
    req:emit('data', chunk)
  elseif is_wanted(req) or not socket._res.finished then
    req._queue = req._queue or {}
    req._queue[#req._queue + 1] = chunk
    req._queued = (req._queued or 0) + #chunk
    if req._queued > QUEUE_MAX and not req._held then
      req._held = true
      connection.hold(socket._pointer, true)
    end
  end
end

function callbacks.done(socket)
  local req = socket._req
  req.complete = true
  flow(req)
end

function callbacks.drain(socket)
  local res = socket._res
  if res.handlers and not res.finished then
    res:emit('drain')
  end
end

-- What a handler still does with the reply is let go: a write tells that the client is gone.
function callbacks.failed(socket)
  local res = socket._res
  res.finished = true
  res._conn = nil
end

callbacks.schedule = schedule

function callbacks.linger(socket)
  local timer = uv.new_timer()
  socket._linger = timer
  uv.timer_start(timer, LINGER_MS, 0, function()
    socket:destroy()
  end)
end

function callbacks.closed(socket)
  sockets[socket] = nil
  socket._conn = nil
  uv.close(socket._handle)
  if socket._linger then
    uv.close(socket._linger)
  end
  local req, res = socket._req, socket._res
  if res and not (res.finished and req.complete) then
    res._conn = nil
    req._queue = nil
    if res.handlers then
      res:emit('close')
    end
    if req.handlers then
      req:emit('close')
    end
  end
  if socket.handlers then
    socket:emit('close')
  end
end

connection.start(callbacks)

-- The server

local connection_pointer = ffi.typeof('struct connection *')

local Server = Emitter:extend()

function Server:initialize(onRequest)
  self._onRequest = onRequest
end

local function accept(server)
  local handle = uv.new_tcp()
  if not uv.accept(server._handle, handle) then
    return uv.close(handle)
  end
  local socket = Socket:new()
  socket._handle = handle
  socket._onRequest = server._onRequest
  socket._pointer = connection.attach(handle, socket)
  socket._conn = ffi.cast(connection_pointer, socket._pointer)
  watch(socket)
  if server.handlers then
    server:emit('connection', socket)
  end
end

-- listen(port, [host], [callback])
function Server:listen(port, host, callback)
  if type(host) == 'function' then
    host, callback = nil, host
  end
  host = host or '0.0.0.0'
  port = tonumber(port)
  if not port or port < 0 or port > 65535 or port % 1 ~= 0 then
    error('a port is a number from 0 to 65535', 2)
  end
  self._handle = uv.new_tcp()
  local ok, problem = uv.tcp_bind(self._handle, host, port)
  if ok then
    uv.tcp_nodelay(self._handle, true) -- accepted sockets inherit it
    ok, problem = uv.listen(self._handle, BACKLOG, function(failure)
      if not failure then
        accept(self)
      end
    end)
  end
  if not ok then
    error('cannot listen on ' .. host .. ':' .. port .. ': ' .. problem, 2)
  end
  if callback then
    local timer = uv.new_timer()
    uv.timer_start(timer, 0, 0, function()
      uv.close(timer)
      callback()
    end)
  end
  return self
end

function Server:address()
  return self._handle and uv.tcp_getsockname(self._handle)
end

-- Accepts no more; open connections live on.
function Server:close(callback)
  if self._handle and not uv.is_closing(self._handle) then
    uv.close(self._handle, callback)
  end
end

-- createServer(onRequest) or createServer(options, onRequest)
local function createServer(options, onRequest)
  if type(options) == 'function' then
    onRequest = options
  end
  return Server:new(onRequest)
end

return {
  createServer = createServer,
  IncomingMessage = IncomingMessage,
  ServerResponse = ServerResponse,
  Server = Server,
}
