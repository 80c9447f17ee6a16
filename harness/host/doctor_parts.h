/* The doctor's parts share one scene: where to read, and where findings go. Private to host/.
 */
#ifndef HOST_DOCTOR_PARTS_H
#define HOST_DOCTOR_PARTS_H

#include "host/doctor.h"

#include <stddef.h>

struct scene {
    const char *root;
    const struct host_cpu_plan *cpus;
    const struct host_probe *probe;
    uint64_t sample_ns;
    bool hypervisor, hypervisor_known; /* set by the first finding, used by later ones */
    struct host_doctor *doctor;
};

/* A new finding, known and no doubt. */
struct host_finding *scene_find(struct scene *scene, const char *key, const char *effect);

void finding_say(struct host_finding *finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void finding_add(struct host_finding *finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void finding_unknown(struct host_finding *finding, const char *why);
void finding_remedy(struct host_finding *finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The file's text under the root; false if unreadable or empty. _line: the first line alone. */
bool scene_text(const struct scene *scene, char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
bool scene_line(const struct scene *scene, char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
bool scene_number(const struct scene *scene, long long *number, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The cores a run takes: the server's, then the load generator's, each once. */
int scene_cores(const struct scene *scene, int cores[HOST_SERVERS_MAX + HOST_HAMMERS_MAX]);

void doctor_of_cores(struct scene *scene);  /* doctor_cores.c */
void doctor_of_shares(struct scene *scene); /* doctor_shares.c: who else uses them, memory */
void doctor_of_limits(struct scene *scene); /* doctor_limits.c: files, network, io_uring, perf */

#endif
