/* The machine's fingerprint, kept in every record: two runs with different ones are not compared.
 */
#ifndef HOST_MACHINE_H
#define HOST_MACHINE_H

#include <jansson.h>

/* A new JSON object; what can't be read is absent. Never NULL.
 *   hostname, kernel, os, cpu_model   strings
 *   cpus_online, cpus_allowed         numbers
 *   memory_bytes                      MemTotal of /proc/meminfo
 *   clocksource, governor, driver     strings from /sys (cpufreq of CPU 0)
 *   turbo, smt, hypervisor            booleans
 *   container                         "docker", "podman", … or "unknown kind"; absent outside one
 *   image                             SHOWDOWN_IMAGE of the environment: the image's digest
 *   cpu_list                          the CPUs allowed, such as "0-3,8"
 *   seccomp                           "none", "strict" or "filter"
 *   seccomp_profile                   SHOWDOWN_SECCOMP of the environment: the filter's name
 *   mitigations                       object, file of /sys/devices/system/cpu/vulnerabilities: text
 *   file_limit, file_limit_hard, somaxconn, tcp_max_syn_backlog, load_1min    numbers
 *   port_range                        [low, high] of net.ipv4.ip_local_port_range
 *   io_uring_disabled                 number, of kernel.io_uring_disabled (Linux 6.6)
 *   libc                              string */
json_t *host_machine_describe(void);

#endif
