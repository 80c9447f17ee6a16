local r = lighty.r
if not r.req_body.collect then
    return 0
end
r.resp_header["Content-Type"] = "text/plain"
if r.req_attr["uri.path"] == "/" then
    r.resp_body.set("Hello World\n")
    return 200
end
r.resp_body.set("Not Found\n")
return 404
