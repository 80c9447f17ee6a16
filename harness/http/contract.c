#include "http/contract.h"

const struct http_expect contract_hello = {
    .status = 200,
    .content_type = "text/plain",
    .body = "Hello World\n",
    .body_bytes = 12,
    .date = true,
};
