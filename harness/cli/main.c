#include "cli/cli.h"
#include "base/mem.h"
#include "version.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    int (*run)(const struct cli *cli, int argc, char **argv);
    const char *summary;
} commands[] = {
    {"run", cli_run, "measure the entries side by side and print the table"},
    {"report", cli_report, "print the table of a run that was recorded"},
    {"compare", cli_compare, "two records, or two builds of one entry: faster, slower or the same"},
    {"list", cli_list, "the entries, and what those that can't run need"},
    {"check", cli_check, "hold entries, or any server, against the contract"},
    {"serve", cli_serve, "one entry in the foreground, for curl"},
    {"vet", cli_vet, "a first look at an entry that is new"},
    {"hammer", cli_hammer, "load one URL and print what came back"},
    {"cost", cli_cost, "count instructions and system calls a request: repeatable, for CI"},
    {"doctor", cli_doctor, "what this machine does to the numbers, and how to change it"},
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void help(FILE *out)
{
    fputs("usage: showdown [--root DIR] [--build DIR] COMMAND [ARGUMENT…]\n"
          "Compares HTTP servers on this machine, and says how far the comparison holds.\n\n",
          out);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].summary);
    fputs("\n  --root DIR   the folder that holds servers/ and results/ (default: beside the "
          "program)\n"
          "  --build DIR  the folder that holds the built servers (default: the program's own)\n"
          "  --version, --help; each command has its own --help\n\n"
          "example: showdown run libuv libev --quick\n",
          out);
}

/* The folder this program lies in: its servers lie under it, and its root is the folder above. */
static char *program_folder(void)
{
    char path[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    if (size < 0)
        return mem_copy_string(".");
    path[size] = '\0';
    return mem_copy_string(dirname(path));
}

/* An absolute path, since servers are started from their own folders. Exits if there is none. */
static char *absolute(const char *flag, const char *path)
{
    char *resolved = realpath(path, NULL);
    if (resolved == NULL) {
        fprintf(stderr, "showdown: %s %s: no such folder\n", flag, path);
        exit(CLI_USAGE);
    }
    return resolved;
}

static int run_command(const struct cli *cli, int argc, char **argv)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(argv[0], commands[i].name) == 0)
            return commands[i].run(cli, argc, argv);
    fprintf(stderr, "showdown: unknown command '%s'; one of:", argv[0]);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(stderr, " %s", commands[i].name);
    fputc('\n', stderr);
    return CLI_USAGE;
}

/* A file opened while one of these is closed would take its number, and what is printed would go
 * into the record. */
static void fill_standard_files(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
}

/* A reader that has seen enough, as in `showdown list | head -1`, is no failure; a full disk is.
 * The errno of a write that failed long ago is lost, so the pipe is asked (poll(2), POLLERR). */
static int end_output(int status)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return status;
    if (poll(&out, 1, 0) > 0 && (out.revents & POLLERR) != 0)
        return status;
    fputs("showdown: standard output cannot be written; is the disk full?\n", stderr);
    return status == CLI_OK ? CLI_FAILED : status;
}

/* Reads the options before the command; returns the index of the command, or -1 for none. */
static int read_options(int argc, char **argv, const char **root, const char **build)
{
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        const char **value = strcmp(argv[i], "--root") == 0    ? root
                             : strcmp(argv[i], "--build") == 0 ? build
                                                               : NULL;
        if (strcmp(argv[i], "--version") == 0) {
            puts("showdown " SHOWDOWN_VERSION);
            exit(end_output(CLI_OK));
        }
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            help(stdout);
            exit(end_output(CLI_OK));
        }
        if (value == NULL || i + 1 == argc) {
            fprintf(stderr, "showdown: %s %s; try: showdown --help\n", argv[i],
                    value == NULL ? "is not a flag here" : "needs a folder");
            exit(CLI_USAGE);
        }
        *value = argv[++i];
    }
    return i < argc ? i : -1;
}

int main(int argc, char **argv)
{
    const char *root = NULL;
    const char *build = NULL;
    fill_standard_files();
    signal(SIGPIPE,
           SIG_IGN); /* `showdown list | head -1` ends by a failed write, not by a signal */
    int command = read_options(argc, argv, &root, &build);
    if (command < 0) {
        help(stderr);
        return CLI_USAGE;
    }
    char *own = program_folder();
    char *above = mem_format("%s/..", own);
    char *root_path = absolute("--root", root != NULL ? root : above);
    char *build_path = absolute("--build", build != NULL ? build : own);
    struct cli cli = {.root = root_path, .build = build_path, .version = SHOWDOWN_VERSION};
    int status = end_output(run_command(&cli, argc - command, argv + command));
    free(own);
    free(above);
    free(root_path);
    free(build_path);
    return status;
}
