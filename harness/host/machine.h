/* The machine's fingerprint, kept in every record: two runs with different ones are not compared.
 */
#ifndef HOST_MACHINE_H
#define HOST_MACHINE_H

#include <jansson.h>

/* A new JSON object: hostname, kernel, cpu_model, cpus_online, cpus_allowed, memory_bytes,
 * clocksource, governor, turbo, smt, hypervisor (bool), container, mitigations (object),
 * file_limit, somaxconn, port_range, io_uring_disabled, load_1min …; what can't be read is absent.
 * Never NULL. */
json_t *host_machine_describe(void);

#endif
