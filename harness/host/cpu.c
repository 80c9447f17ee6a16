#include "host/cpu.h"

#include "base/mem.h"
#include "host/file.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long read_of_cpu(int cpu, const char *file, long otherwise)
{
    char path[128];
    char text[256];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", cpu, file);
    if (host_file_read(path, text, sizeof text) <= 0)
        return otherwise;
    char *end;
    long value = strtol(text, &end, 10);
    return end != text ? value : otherwise;
}

int host_topology_read(struct host_topology *topology, struct err *err)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return err_set(err, errno, "cannot read which CPUs this process may use: %s",
                       strerror(errno));
    topology->count = 0;
    for (int cpu = 0; cpu < HOST_CPUS_MAX; cpu++) {
        if (!CPU_ISSET((size_t)cpu, &set))
            continue;
        struct host_cpu *c = &topology->cpus[topology->count++];
        c->number = cpu;
        /* The list starts with its lowest number. */
        c->core = (int)read_of_cpu(cpu, "topology/thread_siblings_list", cpu);
        c->package = (int)read_of_cpu(cpu, "topology/physical_package_id", 0);
        c->speed = read_of_cpu(cpu, "cpu_capacity", 0);
        if (c->speed == 0)
            c->speed = read_of_cpu(cpu, "cpufreq/cpuinfo_max_freq", 0);
    }
    return 0;
}

static void list_cpus(const struct host_topology *t, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < t->count && used < size; i++) {
        int last = i;
        while (last + 1 < t->count && t->cpus[last + 1].number == t->cpus[last].number + 1)
            last++;
        const char *comma = i > 0 ? "," : "";
        int wrote = last > i ? snprintf(text + used, size - used, "%s%d-%d", comma,
                                        t->cpus[i].number, t->cpus[last].number)
                             : snprintf(text + used, size - used, "%s%d", comma, t->cpus[i].number);
        used += (size_t)wrote;
        i = last;
    }
}

static const struct host_cpu *choose_server(const struct host_topology *t, int wanted)
{
    const struct host_cpu *best = NULL;
    for (int i = 0; i < t->count; i++) {
        const struct host_cpu *c = &t->cpus[i];
        if (wanted >= 0 ? c->number == wanted : best == NULL || c->speed >= best->speed)
            best = c;
    }
    return best;
}

/* Lower is better; each reason weighs more than all those after it. */
static int hammer_cost(const struct host_cpu *c, const struct host_cpu *server,
                       const struct host_cpu *const *taken, int count)
{
    int cost = 0;
    if (c->core == server->core && c->package == server->package)
        cost += 8;
    for (int i = 0; i < count; i++)
        if (c->core == taken[i]->core && c->package == taken[i]->package) {
            cost += 4;
            break;
        }
    if (c->package != server->package)
        cost += 2;
    if (c->speed < server->speed)
        cost += 1;
    return cost;
}

static bool is_taken(const struct host_cpu *c, const struct host_cpu *const *taken, int count)
{
    for (int i = 0; i < count; i++)
        if (taken[i] == c)
            return true;
    return false;
}

static const struct host_cpu *choose_hammer(const struct host_topology *t,
                                            const struct host_cpu *server,
                                            const struct host_cpu *const *taken, int count)
{
    const struct host_cpu *best = NULL;
    int best_cost = 0;
    for (int i = t->count - 1; i >= 0; i--) {
        const struct host_cpu *c = &t->cpus[i];
        if (c == server || is_taken(c, taken, count))
            continue;
        int cost = hammer_cost(c, server, taken, count);
        if (best == NULL || cost < best_cost) {
            best = c;
            best_cost = cost;
        }
    }
    return best;
}

int host_cpu_choose(const struct host_topology *t, int server, int hammer_count,
                    struct host_cpu_plan *plan, struct err *err)
{
    char allowed[256];
    list_cpus(t, allowed, sizeof allowed);
    const struct host_cpu *chosen = choose_server(t, server);
    if (chosen == NULL)
        return err_set(err, EINVAL, "CPU %d cannot be used for the server; allowed are: %s", server,
                       allowed);
    if (hammer_count < 1 || hammer_count > HOST_HAMMERS_MAX)
        return err_set(err, EINVAL, "%d CPUs for the load generator: it takes 1 to %d",
                       hammer_count, HOST_HAMMERS_MAX);
    *plan = (struct host_cpu_plan){.server = chosen->number, .allowed_count = t->count};
    if (t->count == 1) {
        plan->shared = true;
        plan->hammer[0] = chosen->number;
        plan->hammer_count = 1;
        return 0;
    }
    if (hammer_count > t->count - 1)
        return err_set(err, EINVAL,
                       "%d CPUs for the load generator beside the server's, but only CPUs %s may "
                       "be used",
                       hammer_count, allowed);
    const struct host_cpu *taken[HOST_HAMMERS_MAX];
    for (int i = 0; i < hammer_count; i++) {
        taken[i] = choose_hammer(t, chosen, taken, i);
        plan->hammer[i] = taken[i]->number;
        if (taken[i]->core == chosen->core && taken[i]->package == chosen->package)
            plan->siblings = true;
    }
    plan->hammer_count = hammer_count;
    return 0;
}

static const struct host_cpu *find_cpu(const struct host_topology *t, int number)
{
    for (int i = 0; i < t->count; i++)
        if (t->cpus[i].number == number)
            return &t->cpus[i];
    return NULL;
}

static bool is_among(int number, const int *numbers, int count)
{
    for (int i = 0; i < count; i++)
        if (numbers[i] == number)
            return true;
    return false;
}

/* The fastest CPU that is none of `taken`, of the last of them, as far as can be on a core of its
 * own. */
static const struct host_cpu *choose_beside(const struct host_topology *t, const int *taken,
                                            int count)
{
    const struct host_cpu *best = NULL;
    bool best_shares = false;
    for (int i = 0; i < t->count; i++) {
        const struct host_cpu *c = &t->cpus[i];
        bool shares = false;
        for (int j = 0; j < count; j++) {
            const struct host_cpu *other = find_cpu(t, taken[j]);
            shares =
                shares || (other != NULL && other->core == c->core && other->package == c->package);
        }
        if (is_among(c->number, taken, count))
            continue;
        if (best == NULL || shares < best_shares ||
            (shares == best_shares && c->speed >= best->speed)) {
            best = c;
            best_shares = shares;
        }
    }
    return best;
}

static int refuse_overlap(int cpu, const char *allowed, struct err *err)
{
    return err_set(err, EINVAL,
                   "CPU %d is the server's, and cannot be the load generator's as well; allowed "
                   "are: %s",
                   cpu, allowed);
}

/* One CPU in all: the load generator has to be told that one. */
static int check_hammers(const struct host_topology *t, const struct host_cpu *server,
                         const int *hammer, int count, struct err *err)
{
    char allowed[256];
    list_cpus(t, allowed, sizeof allowed);
    for (int i = 0; i < count; i++) {
        if (find_cpu(t, hammer[i]) == NULL)
            return err_set(err, EINVAL,
                           "CPU %d cannot be used for the load generator; allowed are: %s",
                           hammer[i], allowed);
        if (is_among(hammer[i], hammer, i))
            return err_set(err, EINVAL, "CPU %d is named twice for the load generator", hammer[i]);
        if (hammer[i] == server->number && t->count > 1)
            return refuse_overlap(hammer[i], allowed, err);
    }
    return 0;
}

int host_cpu_assign(const struct host_topology *t, int server, const int *hammer, int hammer_count,
                    struct host_cpu_plan *plan, struct err *err)
{
    char allowed[256];
    list_cpus(t, allowed, sizeof allowed);
    if (hammer_count < 1 || hammer_count > HOST_HAMMERS_MAX)
        return err_set(err, EINVAL, "%d CPUs for the load generator: it takes 1 to %d",
                       hammer_count, HOST_HAMMERS_MAX);
    const struct host_cpu *chosen = server >= 0 || t->count == 1
                                        ? choose_server(t, server)
                                        : choose_beside(t, hammer, hammer_count);
    if (chosen == NULL && server >= 0)
        return err_set(err, EINVAL, "CPU %d cannot be used for the server; allowed are: %s", server,
                       allowed);
    if (chosen == NULL)
        return err_set(err, EINVAL,
                       "the load generator was given all CPUs that may be used (%s), and none is "
                       "left for the server",
                       allowed);
    int status = check_hammers(t, chosen, hammer, hammer_count, err);
    if (status != 0)
        return status;
    *plan = (struct host_cpu_plan){.server = chosen->number,
                                   .hammer_count = hammer_count,
                                   .allowed_count = t->count,
                                   .shared = t->count == 1};
    for (int i = 0; i < hammer_count; i++) {
        const struct host_cpu *h = find_cpu(t, hammer[i]);
        plan->hammer[i] = hammer[i];
        plan->siblings = plan->siblings ||
                         (h != chosen && h->core == chosen->core && h->package == chosen->package);
    }
    return 0;
}

/* Those of the servers that are not the first. */
static int add_servers(const struct host_topology *t, const int *servers, int count,
                       struct host_cpu_plan *plan, struct err *err)
{
    char allowed[256];
    list_cpus(t, allowed, sizeof allowed);
    for (int i = 1; i < count; i++) {
        const struct host_cpu *c = find_cpu(t, servers[i]);
        if (c == NULL)
            return err_set(err, EINVAL, "CPU %d cannot be used for the server; allowed are: %s",
                           servers[i], allowed);
        if (is_among(servers[i], servers, i))
            return err_set(err, EINVAL, "CPU %d is named twice for the server", servers[i]);
        for (int j = 0; j < plan->hammer_count; j++) {
            const struct host_cpu *h = find_cpu(t, plan->hammer[j]);
            if (h == c)
                return refuse_overlap(servers[i], allowed, err);
            plan->siblings = plan->siblings || (h->core == c->core && h->package == c->package);
        }
        plan->more[plan->more_count++] = servers[i];
    }
    return 0;
}

int host_cpu_meet(const struct host_topology *t, const struct host_cpu_wish *wish,
                  struct host_cpu_plan *plan, struct err *err)
{
    char allowed[256];
    int server = wish->server_count > 0 ? wish->servers[0] : -1;
    int status;
    if (wish->server_count > HOST_SERVERS_MAX)
        return err_set(err, EINVAL, "%d CPUs for the server: it takes up to %d", wish->server_count,
                       HOST_SERVERS_MAX);
    if (wish->hammer_count > 0) {
        status = host_cpu_assign(t, server, wish->hammers, wish->hammer_count, plan, err);
    } else if (wish->server_count <= 1) {
        status = host_cpu_choose(t, server, 1, plan, err);
    } else {
        const struct host_cpu *hammer = choose_beside(t, wish->servers, wish->server_count);
        list_cpus(t, allowed, sizeof allowed);
        if (hammer == NULL)
            return err_set(err, EINVAL,
                           "the server was given all CPUs that may be used (%s), and none is left "
                           "for the load generator: name one fewer",
                           allowed);
        status = host_cpu_assign(t, server, &hammer->number, 1, plan, err);
    }
    return status != 0 ? status : add_servers(t, wish->servers, wish->server_count, plan, err);
}

int host_cpu_servers(const struct host_cpu_plan *plan, int cpus[HOST_SERVERS_MAX])
{
    cpus[0] = plan->server;
    for (int i = 0; i < plan->more_count; i++)
        cpus[i + 1] = plan->more[i];
    return plan->more_count + 1;
}

int host_cpu_plan_for(const struct host_cpu_wish *wish, struct host_cpu_plan *plan, struct err *err)
{
    struct host_topology *topology = mem_alloc(1, sizeof *topology);
    int status = host_topology_read(topology, err);
    if (status == 0)
        status = host_cpu_meet(topology, wish, plan, err);
    free(topology);
    return status;
}

int host_cpu_plan(int server, int hammer_count, struct host_cpu_plan *plan, struct err *err)
{
    struct host_topology *topology = mem_alloc(1, sizeof *topology);
    int status = host_topology_read(topology, err);
    if (status == 0)
        status = host_cpu_choose(topology, server, hammer_count, plan, err);
    free(topology);
    return status;
}

int host_cpu_pin(int cpu, struct err *err)
{
    if (cpu < 0 || cpu >= HOST_CPUS_MAX)
        return err_set(err, EINVAL, "there is no CPU %d", cpu);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        return err_set(err, errno, "cannot pin to CPU %d: %s", cpu, strerror(errno));
    return 0;
}
