#include "trial/workload.h"
#include "base/near.h"
#include "http/contract.h"
#include "http/request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const close_header[] = {"Connection: close", NULL};

static const struct http_expect hello_and_close = {
    .status = 200,
    .content_type = "text/plain",
    .body = "Hello World\n",
    .body_bytes = 12,
    .date = true,
    .close = true,
};

static const struct workload workloads[] = {
    {
        .name = "hello",
        .summary = "GET / over keep-alive connections, one request at a time on each",
        .method = "GET",
        .target = "/",
        .expect = &contract_hello,
        .connections = 64,
        .pipeline = 1,
    },
    {
        .name = "pipelined",
        .summary = "GET / over keep-alive connections, 16 requests outstanding on each",
        .method = "GET",
        .target = "/",
        .expect = &contract_hello,
        .connections = 64,
        .pipeline = 16,
    },
    {
        .name = "close",
        .summary = "GET / with a new connection for every request",
        .method = "GET",
        .target = "/",
        .headers = close_header,
        .expect = &hello_and_close,
        .connections = 64,
        .pipeline = 1,
        .close_each = true,
    },
};

enum { WORKLOADS = sizeof workloads / sizeof workloads[0] };

const char *workload_names(void)
{
    static char names[256];
    size_t used = 0;
    for (size_t i = 0; i < WORKLOADS; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i == 0 ? "" : ", ",
                                 workloads[i].name);
    return names;
}

const struct workload *workload_find(const char *name, struct err *err)
{
    for (size_t i = 0; i < WORKLOADS; i++)
        if (strcmp(workloads[i].name, name) == 0)
            return &workloads[i];
    const char *names[WORKLOADS];
    for (size_t i = 0; i < WORKLOADS; i++)
        names[i] = workloads[i].name;
    const char *near = near_name(name, names, WORKLOADS);
    if (near != NULL)
        err_set(err, ENOENT, "unknown workload '%s'; did you mean '%s'? There are: %s", name, near,
                workload_names());
    else
        err_set(err, ENOENT, "unknown workload '%s'; there are: %s", name, workload_names());
    return NULL;
}

int workload_request(const struct workload *workload, unsigned port, char **bytes, size_t *size,
                     struct err *err)
{
    char host[32];
    snprintf(host, sizeof host, "127.0.0.1:%u", port);
    size_t headers = 0;
    while (workload->headers != NULL && workload->headers[headers] != NULL)
        headers++;
    const struct http_request request = {
        .method = workload->method,
        .target = workload->target,
        .host = host,
        .headers = workload->headers,
        .header_count = headers,
        .body = workload->body,
        .body_bytes = workload->body != NULL ? strlen(workload->body) : 0,
    };
    return http_request_build(&request, bytes, size, err);
}
