#include "cli/cli.h"
#include "base/clock.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static void complain(const char *format, va_list arguments)
{
    fputs("showdown: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

int cli_fail(enum cli_exit status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    complain(format, arguments);
    va_end(arguments);
    return (int)status;
}

int cli_usage(const char *command, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    complain(format, arguments);
    va_end(arguments);
    fprintf(stderr, "try: showdown %s --help\n", command);
    return CLI_USAGE;
}

int cli_next_option(int argc, char **argv, const char *letters, const struct option *options)
{
    int here = optind > 0 ? optind : 1;
    opterr = 0;
    int option = getopt_long(argc, argv, letters, options, NULL);
    if (option == ':')
        cli_usage(argv[0], "%s needs a value", argv[optind - 1]);
    else if (option == '?' && optopt != 0 && optopt < 256)
        cli_usage(argv[0], "unknown flag -%c", optopt);
    else if (option == '?')
        cli_usage(argv[0], "unknown flag %s", argv[optind > here ? optind - 1 : here]);
    return option == ':' ? '?' : option;
}

static const char digits[] = "0123456789";

int cli_parse_number(const char *command, const char *flag, const char *text, uint64_t low,
                     uint64_t high, uint64_t *number)
{
    errno = 0;
    unsigned long long value = strtoull(text, NULL, 10);
    bool plain = text[0] != '\0' && text[strspn(text, digits)] == '\0';
    if (!plain || errno != 0 || value < low || value > high) {
        cli_usage(command, "%s takes a whole number from %llu to %llu, not '%s'", flag,
                  (unsigned long long)low, (unsigned long long)high, text);
        return -1;
    }
    *number = value;
    return 0;
}

/* Digits with at most one point among them: strtod(3) also takes signs, blanks, "0x1p3", "1e9",
 * "inf" and "nan", which are slips of the hand here. Returns what follows, or NULL. */
static const char *parse_decimal(const char *text, double *value)
{
    size_t whole = strspn(text, digits);
    size_t part = text[whole] == '.' ? strspn(text + whole + 1, digits) : 0;
    size_t size = whole + (text[whole] == '.') + part;
    if (whole + part == 0 || size > 40)
        return NULL;
    char number[48];
    snprintf(number, sizeof number, "%.*s", (int)size, text);
    *value = strtod(number, NULL);
    return text + size;
}

static double unit_ns(const char *unit)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6},  {"s", 1e9},
                 {"", 1e9}, {"m", 6e10}, {"h", 3.6e12}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(unit, units[i].name) == 0)
            return units[i].ns;
    return 0;
}

int cli_parse_duration_ns(const char *command, const char *flag, const char *text,
                          uint64_t *duration_ns)
{
    double value = 0;
    const char *end = parse_decimal(text, &value);
    double ns = end != NULL ? value * unit_ns(end) : 0;
    if (ns < 1 || ns > (double)CLI_DURATION_MAX_NS) {
        cli_usage(command,
                  "%s takes a duration above zero, up to 24h, such as 500ms, 10s or 2m, not '%s'",
                  flag, text);
        return -1;
    }
    *duration_ns = (uint64_t)ns;
    return 0;
}

int cli_parse_percent(const char *command, const char *flag, const char *text, double low,
                      double high, double *share)
{
    double percent = 0;
    const char *end = parse_decimal(text, &percent);
    if (end == NULL || strcmp(end, "%") != 0 || percent < low * 100 || percent > high * 100) {
        cli_usage(command, "%s takes a percentage from %g%% to %g%%, such as 1%%, not '%s'", flag,
                  low * 100, high * 100, text);
        return -1;
    }
    *share = percent / 100;
    return 0;
}

/* The CPU at *at, which moves on behind it; -1 if there is none. */
static int parse_cpu(const char **at)
{
    size_t size = strspn(*at, digits);
    long cpu = size > 0 && size < 6 ? strtol(*at, NULL, 10) : -1;
    *at += size;
    return cpu <= 1 << 16 ? (int)cpu : -1;
}

int cli_parse_cpus(const char *command, const char *flag, const char *text, int *cpus, int max)
{
    int count = 0;
    const char *at = text;
    for (;;) {
        int first = parse_cpu(&at);
        int last = first;
        if (first >= 0 && *at == '-') {
            at++;
            last = parse_cpu(&at);
        }
        if (first < 0 || last < first || last - first >= max - count)
            break;
        for (int cpu = first; cpu <= last; cpu++)
            cpus[count++] = cpu;
        if (*at == '\0')
            return count;
        if (*at++ != ',')
            break;
    }
    cli_usage(command, "%s takes a list of CPU numbers such as 0,2-3, not '%s'", flag, text);
    return -1;
}

int cli_parse_engine(const char *command, const char *text, enum hammer_engine *engine)
{
    for (int i = HAMMER_AUTO; i <= HAMMER_URING; i++)
        if (strcmp(hammer_engine_name((enum hammer_engine)i), text) == 0) {
            *engine = (enum hammer_engine)i;
            return 0;
        }
    cli_usage(command, "--engine takes auto, epoll or io_uring, not '%s'", text);
    return -1;
}

uint64_t cli_random_seed(void)
{
    uint32_t seed;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        seed = (uint32_t)clock_now_ns();
    return seed;
}

volatile sig_atomic_t cli_stop;

static void ask_to_stop(int signal_number)
{
    (void)signal_number;
    cli_stop = 1;
}

void cli_catch_stop(void)
{
    struct sigaction action = {.sa_handler = ask_to_stop, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}
