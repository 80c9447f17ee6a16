-- luvit examples/echo.lua [PORT]: sends back the body of each request while it comes in.
local http = require('http')

http.createServer(function(req, res)
  res:setHeader('Content-Type', req.headers['content-type'] or 'application/octet-stream')
  req:on('data', function(chunk)
    if not res:write(chunk) then
      req:pause()
    end
  end)
  res:on('drain', function()
    req:resume()
  end)
  req:on('end', function()
    res:finish()
  end)
end):listen(tonumber(process.argv[2]) or 8080, '127.0.0.1')
