/* The commands, and what they share: where things lie, reading options, saying what is wrong.
 * Only this room prints and exits.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "base/err.h"
#include "entry/entry.h"
#include "hammer/hammer.h"

#include <getopt.h>
#include <signal.h>
#include <stdint.h>

enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,
    CLI_GATE = 3,
    CLI_INCONCLUSIVE = 4,
    CLI_INTERRUPTED = 130
};

struct cli {
    const char *root;  /* absolute; holds servers/ and results/ */
    const char *build; /* absolute; holds showdown and servers/NAME programs */
    const char *version;
};

int cli_list(const struct cli *cli, int argc, char **argv);
int cli_serve(const struct cli *cli, int argc, char **argv);
int cli_hammer(const struct cli *cli, int argc, char **argv);
int cli_check(const struct cli *cli, int argc, char **argv);
int cli_run(const struct cli *cli, int argc, char **argv);
int cli_report(const struct cli *cli, int argc, char **argv);
int cli_vet(const struct cli *cli, int argc, char **argv);
int cli_compare(const struct cli *cli, int argc, char **argv);
int cli_cost(const struct cli *cli, int argc, char **argv);
int cli_doctor(const struct cli *cli, int argc, char **argv);

/* Prints "showdown: <text>" to standard error and returns `status`, so that `return cli_fail(...)`
 * reads well. cli_usage adds "try: showdown COMMAND --help" and returns CLI_USAGE. */
int cli_fail(enum cli_exit status, const char *format, ...) __attribute__((format(printf, 2, 3)));
int cli_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* All entries: entry_list_read and part_check. -errno with no list. */
int cli_read_entries(const struct cli *cli, struct entry_list *list, struct err *err);

/* getopt_long with its messages replaced by ours: an unknown flag or a missing value prints a
 * usage error naming it and returns '?'. Long options without a letter use values of 256 and more.
 */
int cli_next_option(int argc, char **argv, const char *letters, const struct option *options);

/* These print a usage error that names `flag` and what it takes, and return -1, or 0. Numbers are
 * digits (and a point, but in whole ones) and nothing else. Durations are a number and a unit: ns
 * us ms s m h; a bare number is seconds; at most CLI_DURATION_MAX_NS. Percentages carry their sign:
 * "1.5%" is 0.015. */
#define CLI_DURATION_MAX_NS UINT64_C(86400000000000)

int cli_parse_number(const char *command, const char *flag, const char *text, uint64_t low,
                     uint64_t high, uint64_t *number);
int cli_parse_duration_ns(const char *command, const char *flag, const char *text,
                          uint64_t *duration_ns);
int cli_parse_percent(const char *command, const char *flag, const char *text, double low,
                      double high, double *share);

int cli_parse_engine(const char *command, const char *text, enum hammer_engine *engine);

/* "0,2-3" into cpus[]; returns the count, or -1 after a usage error. */
int cli_parse_cpus(const char *command, const char *flag, const char *text, int *cpus, int max);

/* For what is random and recorded: below 2^32, so that it can be given back as --seed. */
uint64_t cli_random_seed(void);

/* Set once SIGINT, SIGTERM or SIGHUP has come after cli_catch_stop(). The first signal asks to end
 * in order; a second one ends the program at once, and the keepers end the servers. */
extern volatile sig_atomic_t cli_stop;
void cli_catch_stop(void);

#endif
