/* Load generators side by side against one server that does next to nothing: is the hammer the
 * limit? Ours with each engine, wrk and h2load take turns in shuffled order, one core for the
 * server and one for the generator, for c = 64, 256 and 1000, then pipelined 16 deep.
 *
 *   bench/hammer SHOWDOWN SERVER PORT [ROUNDS [SECONDS [CASE...]]]     CASE: 64 256 1000 p16
 *
 * A figure is the median over the rounds. Busy is the server's CPU time by the wall clock in the
 * middle of each run; beside it stands how long its core was idle. What is missing to 100% went to
 * other processes and to interrupts: more than a few percent make a run doubtful. CPU a request is
 * the generator's whole CPU time by all its requests. The ratio is paired in each round; its
 * interval is that of order statistics, at least 95%.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS_MAX 200

enum tool { TOOL_EPOLL, TOOL_URING, TOOL_WRK, TOOL_H2LOAD, TOOLS };

static const char *const tool_names[TOOLS] = {"hammer epoll", "hammer io_uring", "wrk", "h2load"};

struct bench {
    const char *showdown;
    const char *server;
    const char *port;
    unsigned rounds;
    unsigned seconds;
    int server_cpu, client_cpu;
    pid_t server_pid;
};

struct sample {
    double req_per_s;
    double busy, idle;     /* shares of the server's core */
    double cpu_us_per_req; /* of the generator */
};

struct series {
    unsigned count;
    struct sample samples[ROUNDS_MAX];
};

static void die(const char *what)
{
    fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now_s(clockid_t clock)
{
    struct timespec t;
    if (clock_gettime(clock, &t) != 0)
        die("clock_gettime");
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void sleep_s(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds};
    t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
    nanosleep(&t, NULL);
}

/* Seconds that a CPU was idle (proc(5), /proc/stat), in steps of 10 ms. */
static double idle_s(int cpu)
{
    char line[512], label[16];
    unsigned long long user, nice, system, idle = 0, wait = 0;
    FILE *file = fopen("/proc/stat", "re");
    snprintf(label, sizeof label, "cpu%d ", cpu);
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, label, strlen(label)) == 0 &&
            sscanf(line + strlen(label), "%llu %llu %llu %llu %llu", &user, &nice, &system, &idle,
                   &wait) == 5)
            break;
    if (file)
        fclose(file);
    return (double)(idle + wait) / (double)sysconf(_SC_CLK_TCK);
}

/* ---- processes */

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        die("sched_setaffinity");
}

static void choose_cpus(struct bench *b)
{
    cpu_set_t set;
    int found[2] = {-1, -1};
    sched_getaffinity(0, sizeof set, &set);
    for (int cpu = 0; cpu < CPU_SETSIZE && found[1] < 0; cpu++)
        if (CPU_ISSET((size_t)cpu, &set))
            found[found[0] < 0 ? 0 : 1] = cpu;
    if (found[1] < 0) {
        fprintf(stderr, "bench: two CPUs are needed, one for the server, one for the load\n");
        exit(1);
    }
    b->server_cpu = found[0];
    b->client_cpu = found[1];
}

static void server_start(struct bench *b)
{
    b->server_pid = fork();
    if (b->server_pid == 0) {
        pin(b->server_cpu);
        execl(b->server, b->server, "--port", b->port, (char *)NULL);
        die(b->server);
    }
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)atoi(b->port)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int i = 0; i < 200; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int status = connect(fd, (const struct sockaddr *)&address, sizeof address);
        close(fd);
        if (status == 0)
            return;
        sleep_s(0.01);
    }
    fprintf(stderr, "bench: %s does not listen on port %s\n", b->server, b->port);
    exit(1);
}

static void server_stop(const struct bench *b)
{
    kill(b->server_pid, SIGTERM);
    waitpid(b->server_pid, NULL, 0);
}

/* Runs argv on the generator's core; what it printed is in text. */
static void tool_run(const struct bench *b, char *const argv[], struct sample *sample, char *text,
                     size_t size, double *cpu_s)
{
    int ends[2];
    clockid_t server_clock;
    if (clock_getcpuclockid(b->server_pid, &server_clock) != 0 || pipe(ends) != 0)
        die("the server or a pipe");
    pid_t pid = fork();
    if (pid == 0) {
        pin(b->client_cpu);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execvp(argv[0], argv);
        die(argv[0]);
    }
    close(ends[1]);
    sleep_s(b->seconds * 0.4);
    double cpu = -now_s(server_clock), wall = -now_s(CLOCK_MONOTONIC),
           idle = -idle_s(b->server_cpu);
    sleep_s(b->seconds * 0.5);
    cpu += now_s(server_clock);
    wall += now_s(CLOCK_MONOTONIC);
    idle += idle_s(b->server_cpu);
    sample->busy = cpu / wall;
    sample->idle = idle / wall;
    size_t used = 0;
    ssize_t got;
    while (used + 1 < size && (got = read(ends[0], text + used, size - 1 - used)) > 0)
        used += (size_t)got;
    text[used] = '\0';
    close(ends[0]);
    struct rusage usage;
    int status;
    wait4(pid, &status, 0, &usage);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "bench: %s ended badly:\n%s\n", argv[0], text);
        exit(1);
    }
    *cpu_s = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
             (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* ---- the tools */

static double number_after(const char *text, const char *label)
{
    const char *at = strstr(text, label);
    if (!at) {
        fprintf(stderr, "bench: no '%s' in:\n%s\n", label, text);
        exit(1);
    }
    return atof(at + strlen(label));
}

static void read_hammer(const char *text, double *rate, double *requests)
{
    json_t *object = json_loads(text, 0, NULL);
    *rate = json_number_value(json_object_get(object, "req_per_s"));
    *requests = json_number_value(json_object_get(object, "sent"));
    json_decref(object);
}

static void read_wrk(const char *text, double *rate, double *requests)
{
    const char *at = strstr(text, " requests in ");
    while (at && at > text && at[-1] != '\n')
        at--;
    *requests = at ? atof(at) : 0;
    *rate = number_after(text, "Requests/sec:");
}

static void read_h2load(const char *text, double *rate, double *requests)
{
    const char *finished = strstr(text, "finished in ");
    const char *comma = finished ? strchr(finished, ',') : NULL;
    *rate = comma ? atof(comma + 1) : 0;
    *requests = number_after(text, "requests:");
}

static void tool_measure(const struct bench *b, enum tool tool, unsigned c, unsigned pipeline,
                         struct sample *sample)
{
    char url[64], connections[16], depth[16], seconds[16], unit_seconds[16];
    static char text[1 << 16];
    snprintf(url, sizeof url, "http://127.0.0.1:%s/", b->port);
    snprintf(connections, sizeof connections, "%u", c);
    snprintf(depth, sizeof depth, "%u", pipeline);
    snprintf(seconds, sizeof seconds, "%u", b->seconds);
    snprintf(unit_seconds, sizeof unit_seconds, "%us", b->seconds);
    char *showdown = strdup(b->showdown);
    char *const hammer[] = {showdown, "hammer",    url,
                            "-c",     connections, "-p",
                            depth,    "-d",        unit_seconds,
                            "--json", "--engine",  tool == TOOL_EPOLL ? "epoll" : "io_uring",
                            NULL};
    char *const wrk[] = {"wrk", "-t1", "-c", connections, "-d", unit_seconds, url, NULL};
    char *const h2load[] = {"h2load", "--h1", "-t1",   "-c", connections, "-m",
                            depth,    "-D",   seconds, url,  NULL};
    char *const *const argv[TOOLS] = {hammer, hammer, wrk, h2load};
    static void (*const readers[TOOLS])(const char *, double *, double *) = {
        read_hammer, read_hammer, read_wrk, read_h2load};
    double cpu_s, requests;
    tool_run(b, argv[tool], sample, text, sizeof text, &cpu_s);
    readers[tool](text, &sample->req_per_s, &requests);
    sample->cpu_us_per_req = cpu_s / requests * 1e6;
    free(showdown);
}

/* ---- figures */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, unsigned count)
{
    qsort(values, count, sizeof *values, compare);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* The kth smallest and largest of n values hold the median between them with probability
 * 1 - 2 P(Bin(n, 1/2) < k). The largest k that keeps 95%; 1 where none does. */
static unsigned interval_rank(unsigned n)
{
    double term = 1, below = 0;
    unsigned k = 0;
    for (unsigned i = 0; i < n; i++)
        term /= 2;
    for (; k < n / 2; k++) {
        below += term;
        if (2 * below > 0.05)
            break;
        term = term * (n - k) / (k + 1);
    }
    return k > 0 ? k : 1;
}

static void print_row(const char *name, const struct series *own, const struct series *wrk)
{
    double rate[ROUNDS_MAX], busy[ROUNDS_MAX], idle[ROUNDS_MAX], cpu[ROUNDS_MAX], ratio[ROUNDS_MAX],
        cpu_ratio[ROUNDS_MAX];
    unsigned n = own->count;
    for (unsigned i = 0; i < n; i++) {
        rate[i] = own->samples[i].req_per_s;
        busy[i] = own->samples[i].busy;
        idle[i] = own->samples[i].idle;
        cpu[i] = own->samples[i].cpu_us_per_req;
        ratio[i] = rate[i] / wrk->samples[i].req_per_s;
        cpu_ratio[i] = cpu[i] / wrk->samples[i].cpu_us_per_req;
    }
    double middle = median(ratio, n); /* sorts */
    unsigned k = interval_rank(n);
    printf("  %-16s %9.0f %8.1f%% %6.1f%% %9.2f %9.2f [%.2f, %.2f] %11.2f\n", name, median(rate, n),
           100 * median(busy, n), 100 * median(idle, n), median(cpu, n), middle, ratio[k - 1],
           ratio[n - k], median(cpu_ratio, n));
}

static void run_case(const struct bench *b, unsigned c, unsigned pipeline)
{
    static struct series series[TOOLS];
    enum tool order[TOOLS], base = pipeline > 1 ? TOOL_H2LOAD : TOOL_WRK;
    unsigned tools = 0;
    memset(series, 0, sizeof series);
    for (int tool = 0; tool < TOOLS; tool++)
        if (pipeline == 1 || tool != TOOL_WRK)
            order[tools++] = (enum tool)tool;
    for (unsigned round = 0; round < b->rounds; round++) {
        for (unsigned i = tools - 1; i > 0; i--) {
            unsigned other = (unsigned)rand() % (i + 1);
            enum tool kept = order[i];
            order[i] = order[other];
            order[other] = kept;
        }
        for (unsigned i = 0; i < tools; i++) {
            struct series *s = &series[order[i]];
            tool_measure(b, order[i], c, pipeline, &s->samples[s->count++]);
        }
    }
    printf("c = %u%s, %u rounds of %u s\n", c, pipeline > 1 ? ", 16 requests outstanding" : "",
           b->rounds, b->seconds);
    printf("  %-16s %9s %9s %7s %9s %9s %14s %10s\n", "", "req/s", "srv busy", "idle", "us/req",
           "ratio to", tool_names[base], "cpu ratio");
    for (int tool = 0; tool < TOOLS; tool++)
        if (series[tool].count > 0)
            print_row(tool_names[tool], &series[tool], &series[base]);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static char *every[] = {"64", "256", "1000", "p16"};
    if (argc < 4) {
        fprintf(stderr, "usage: %s SHOWDOWN SERVER PORT [ROUNDS [SECONDS [CASE...]]]\n", argv[0]);
        return 2;
    }
    struct bench b = {.showdown = argv[1],
                      .server = argv[2],
                      .port = argv[3],
                      .rounds = argc > 4 ? (unsigned)atoi(argv[4]) : 10,
                      .seconds = argc > 5 ? (unsigned)atoi(argv[5]) : 1};
    if (b.rounds == 0 || b.rounds > ROUNDS_MAX || b.seconds == 0) {
        fprintf(stderr, "%s: ROUNDS is 1 to %d, SECONDS at least 1\n", argv[0], ROUNDS_MAX);
        return 2;
    }
    char **cases = argc > 6 ? argv + 6 : every;
    int count = argc > 6 ? argc - 6 : 4;
    srand((unsigned)time(NULL));
    choose_cpus(&b);
    server_start(&b);
    for (int i = 0; i < count; i++) {
        bool pipelined = strcmp(cases[i], "p16") == 0;
        run_case(&b, pipelined ? 64 : (unsigned)atoi(cases[i]), pipelined ? 16 : 1);
    }
    server_stop(&b);
    return 0;
}
