#include "http/request.h"

#include "http/chars.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct given { /* headers of the caller's that replace one made here */
    unsigned host;
    unsigned content_length;
    unsigned transfer_encoding;
};

static int token_check(const char *part, const char *text, size_t size, struct err *err)
{
    if (size == 0)
        return err_set(err, EINVAL, "the %s is empty", part);
    for (size_t i = 0; i < size; i++)
        if (!chars_is_token(text[i]))
            return err_set(err, EINVAL,
                           "the %s holds the character 0x%02x, which no token may (RFC 9110 5.6.2)",
                           part, (unsigned)(unsigned char)text[i]);
    return 0;
}

static int value_check(const char *part, const char *text, struct err *err)
{
    for (const char *c = text; *c != '\0'; c++)
        if (!chars_is_text(*c))
            return err_set(err, EINVAL, "the %s holds the control character 0x%02x (RFC 9110 5.5)",
                           part, (unsigned)(unsigned char)*c);
    return 0;
}

static int target_check(const char *target, struct err *err)
{
    if (*target == '\0')
        return err_set(err, EINVAL, "the target is empty; '/' is the least");
    for (const char *c = target; *c != '\0'; c++)
        if (*c == ' ' || *c == '\t' || !chars_is_text(*c))
            return err_set(err, EINVAL,
                           "the target holds a space or control character; write it as %%%02X",
                           (unsigned)(unsigned char)*c);
    return 0;
}

static int header_check(const char *header, struct given *given, struct err *err)
{
    int rc = value_check("header", header, err); /* first, since a message quotes it */
    if (rc != 0)
        return rc;
    const char *colon = strchr(header, ':');
    if (colon == NULL)
        return err_set(err, EINVAL, "the header '%.200s' has no colon; write 'Name: value'",
                       header);
    size_t name_bytes = (size_t)(colon - header);
    given->host += chars_equal(header, name_bytes, "host");
    given->content_length += chars_equal(header, name_bytes, "content-length");
    given->transfer_encoding += chars_equal(header, name_bytes, "transfer-encoding");
    return token_check("header name", header, name_bytes, err);
}

static int request_check(const struct http_request *request, struct given *given, struct err *err)
{
    int rc = token_check("method", request->method, strlen(request->method), err);
    if (rc == 0)
        rc = target_check(request->target, err);
    for (size_t i = 0; rc == 0 && i < request->header_count; i++)
        rc = header_check(request->headers[i], given, err);
    if (rc != 0)
        return rc;
    if (given->host > 1 || given->content_length > 1)
        return err_set(err, EINVAL, "the header %s is given twice",
                       given->host > 1 ? "Host" : "Content-Length");
    if (given->content_length != 0 && given->transfer_encoding != 0)
        return err_set(err, EINVAL,
                       "Content-Length and Transfer-Encoding exclude each other (RFC 9112 6.2)");
    if (given->host != 0)
        return 0;
    if (request->host == NULL)
        return err_set(err, EINVAL, "there is no host, and HTTP/1.1 requires one (RFC 9112 3.2)");
    return value_check("host", request->host, err);
}

/* RFC 9110 8.6: sent also for an empty body where the method gives a body a meaning. */
static bool length_wanted(const struct http_request *request, const struct given *given)
{
    if (given->content_length != 0 || given->transfer_encoding != 0)
        return false;
    return request->body != NULL || strcmp(request->method, "POST") == 0 ||
           strcmp(request->method, "PUT") == 0 || strcmp(request->method, "PATCH") == 0;
}

int http_request_build(const struct http_request *request, char **bytes, size_t *size,
                       struct err *err)
{
    struct given given = {0};
    int rc = request_check(request, &given, err);
    if (rc != 0)
        return rc;
    FILE *out = open_memstream(bytes, size);
    if (out == NULL)
        return err_set(err, errno, "the request could not be put together: %s", strerror(errno));
    fprintf(out, "%s %s HTTP/1.1\r\n", request->method, request->target);
    if (given.host == 0)
        fprintf(out, "Host: %s\r\n", request->host);
    for (size_t i = 0; i < request->header_count; i++)
        fprintf(out, "%s\r\n", request->headers[i]);
    size_t body_bytes = request->body != NULL ? request->body_bytes : 0;
    if (length_wanted(request, &given))
        fprintf(out, "Content-Length: %zu\r\n", body_bytes);
    fputs("\r\n", out);
    if (body_bytes != 0)
        fwrite(request->body, 1, body_bytes, out);
    bool failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed) {
        free(*bytes);
        *bytes = NULL;
        return err_set(err, ENOMEM, "no memory for a request of %zu bytes of body", body_bytes);
    }
    return 0;
}
