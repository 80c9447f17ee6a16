/* What this machine does to the numbers: each finding says what was seen, what that means for a
 * measurement, and the command that changes it. Read from /proc and /sys, whose formats are those
 * of proc(5) and of the kernel's Documentation/admin-guide (pm/cpufreq, pm/intel_pstate,
 * cputopology, hw-vuln, cgroup-v1 and -v2, sysctl/net, sysctl/kernel, mm/transhuge) and
 * Documentation/networking/ip-sysctl; what only a call can tell (limits, io_uring, counters) is
 * tried. What can't be read is "unknown": nothing is guessed, and an unknown is never a doubt.
 */
#ifndef HOST_DOCTOR_H
#define HOST_DOCTOR_H

#include "host/cpu.h"
#include "host/perf.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define HOST_DOCTOR_MAX 32

struct host_finding {
    char key[16];
    bool known;
    bool doubt;         /* what was found can bend a comparison: it belongs under the table */
    char found[192];    /* one line without an end; "unknown", with what was looked for */
    const char *effect; /* a sentence; static */
    char remedy[512];   /* a command, or what to do; "" where nothing needs to be changed */
};

struct host_doctor {
    int count;
    struct host_finding findings[HOST_DOCTOR_MAX];
};

/* What no file tells. */
struct host_probe {
    bool files_known;
    uint64_t files_soft, files_hard;  /* RLIMIT_NOFILE */
    int uring;                        /* 0, or -errno of io_uring_setup(2) */
    bool uring_modes;                 /* single issuer, deferred task work: Linux 6.1 */
    bool counted[HOST_PERF_COUNTERS]; /* as host_perf_probe() has it */
    char uncounted_why[HOST_PERF_COUNTERS][192];
};

struct host_doctor_options {
    const char *root; /* put before /proc and /sys; "" for this machine, a planted tree in tests */
    const struct host_cpu_plan *cpus; /* the cores that a run would take */
    uint64_t sample_ns;               /* how long to watch the cores; 0: `others` and `steal` go by
                                         what stands in the files */
    const struct host_probe *probe;   /* NULL: tried on this machine */
};

void host_doctor_examine(const struct host_doctor_options *options, struct host_doctor *doctor);

/* [{key, known, doubt, found, effect, remedy}], remedy absent where empty. Never NULL. */
json_t *host_doctor_to_json(const struct host_doctor *doctor);

void host_probe_take(struct host_probe *probe);

#endif
