-- luvit hello.lua --port 8080
local http = require('http')

local port = 8080
for i, word in ipairs(process.argv) do
  if word == '--port' then
    port = assert(tonumber(process.argv[i + 1]), '--port takes a number')
  end
end

local body = 'Hello World\n'

http.createServer(function(req, res)
  if req.url ~= '/' and req.url:sub(1, 2) ~= '/?' then
    res.statusCode = 404
    res:setHeader('Content-Type', 'text/plain')
    return res:finish('Not Found\n')
  end
  res:setHeader('Content-Type', 'text/plain')
  res:setHeader('Content-Length', #body)
  res:finish(body)
end):listen(port, '127.0.0.1')
