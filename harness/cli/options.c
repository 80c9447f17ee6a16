#include "cli/cli.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int cli_parse_number(const char *command, const char *flag, const char *text, uint64_t low,
                     uint64_t high, uint64_t *number)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || value < low ||
        value > high) {
        cli_usage(command, "%s takes a whole number from %llu to %llu, not '%s'", flag,
                  (unsigned long long)low, (unsigned long long)high, text);
        return -1;
    }
    *number = value;
    return 0;
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
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    double ns = value * unit_ns(end);
    if (errno != 0 || end == text || !isfinite(ns) || ns < 1 || ns > 1e18) {
        cli_usage(command, "%s takes a duration above zero such as 500ms, 10s or 2m, not '%s'",
                  flag, text);
        return -1;
    }
    *duration_ns = (uint64_t)ns;
    return 0;
}

int cli_parse_cpus(const char *command, const char *flag, const char *text, int *cpus, int max)
{
    int count = 0;
    const char *at = text;
    while (*at != '\0') {
        char *end;
        long first = strtol(at, &end, 10);
        long last = first;
        if (end == at)
            break;
        if (*end == '-') {
            at = end + 1;
            last = strtol(at, &end, 10);
            if (end == at)
                break;
        }
        if (first < 0 || last < first || last > 1 << 16 || last - first >= max - count ||
            (*end != ',' && *end != '\0'))
            break;
        for (long cpu = first; cpu <= last; cpu++)
            cpus[count++] = (int)cpu;
        at = *end == ',' ? end + 1 : end;
        if (*end == ',' && *at == '\0')
            break;
        if (*end == '\0')
            return count;
    }
    cli_usage(command, "%s takes a list of CPU numbers such as 0,2-3, not '%s'", flag, text);
    return -1;
}
