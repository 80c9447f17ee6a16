-- @NAME@: a script on the luvit host. http.createServer calls the function once for each request,
-- when all of it, its body too, has come; servers/luvit/README.md says what req and res can do.
local http = require('http')

local port = 8080
for i, word in ipairs(process.argv) do
  if word == '--port' then
    port = assert(tonumber(process.argv[i + 1]), '--port takes a number')
  end
end

http.createServer(function(req, res)
  local found = req.url == '/' or req.url:sub(1, 2) == '/?'
  local body = found and 'Hello World\n' or 'Not Found\n'
  res.statusCode = found and 200 or 404
  res:setHeader('Content-Type', 'text/plain')
  res:setHeader('Content-Length', #body)
  res:finish(body)
end):listen(port, '127.0.0.1')
