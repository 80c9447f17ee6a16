#include "host/doctor.h"

#include "host/doctor_parts.h"
#include "host/file.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct host_finding *scene_find(struct scene *scene, const char *key, const char *effect)
{
    struct host_doctor *doctor = scene->doctor;
    struct host_finding *finding = &doctor->findings[doctor->count];
    if (doctor->count < HOST_DOCTOR_MAX - 1)
        doctor->count++;
    *finding = (struct host_finding){.known = true, .effect = effect};
    snprintf(finding->key, sizeof finding->key, "%s", key);
    return finding;
}

/* What comes from files may hold anything; a finding is one printable line. */
static void make_line(char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || (unsigned char)*text >= 0x7f)
            *text = '?';
}

void finding_say(struct host_finding *finding, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding->found, sizeof finding->found, format, arguments);
    va_end(arguments);
    make_line(finding->found);
}

void finding_add(struct host_finding *finding, const char *format, ...)
{
    size_t used = strlen(finding->found);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding->found + used, sizeof finding->found - used, format, arguments);
    va_end(arguments);
    make_line(finding->found);
}

void finding_unknown(struct host_finding *finding, const char *why)
{
    finding->known = false;
    finding->doubt = false;
    finding_say(finding, "unknown: %s", why);
}

void finding_remedy(struct host_finding *finding, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding->remedy, sizeof finding->remedy, format, arguments);
    va_end(arguments);
}

static bool read_under_root(const struct scene *scene, char *text, size_t size, const char *format,
                            va_list arguments)
{
    char path[1024];
    int used = snprintf(path, sizeof path, "%s", scene->root);
    int more = -1;
    if (used >= 0 && (size_t)used < sizeof path)
        more = vsnprintf(path + used, sizeof path - (size_t)used, format, arguments);
    text[0] = '\0';
    return more >= 0 && (size_t)(used + more) < sizeof path &&
           host_file_read(path, text, size) > 0 && text[0] != '\0';
}

bool scene_text(const struct scene *scene, char *text, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    bool got = read_under_root(scene, text, size, format, arguments);
    va_end(arguments);
    return got;
}

bool scene_line(const struct scene *scene, char *text, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    bool got = read_under_root(scene, text, size, format, arguments);
    va_end(arguments);
    text[strcspn(text, "\n")] = '\0';
    return got && text[0] != '\0';
}

bool scene_number(const struct scene *scene, long long *number, const char *format, ...)
{
    char text[64];
    char *end;
    va_list arguments;
    va_start(arguments, format);
    bool got = read_under_root(scene, text, sizeof text, format, arguments);
    va_end(arguments);
    *number = strtoll(text, &end, 10);
    return got && end != text;
}

int scene_cores(const struct scene *scene, int cores[HOST_SERVERS_MAX + HOST_HAMMERS_MAX])
{
    int count = host_cpu_servers(scene->cpus, cores);
    for (int i = 0; i < scene->cpus->hammer_count; i++)
        if (scene->cpus->hammer[i] != scene->cpus->server)
            cores[count++] = scene->cpus->hammer[i];
    return count;
}

void host_doctor_examine(const struct host_doctor_options *options, struct host_doctor *doctor)
{
    struct host_probe probe;
    struct scene scene = {.root = options->root,
                          .cpus = options->cpus,
                          .probe = options->probe,
                          .sample_ns = options->sample_ns,
                          .doctor = doctor};
    if (scene.probe == NULL) {
        host_probe_take(&probe);
        scene.probe = &probe;
    }
    doctor->count = 0;
    doctor_of_cores(&scene);
    doctor_of_shares(&scene);
    doctor_of_limits(&scene);
}

json_t *host_doctor_to_json(const struct host_doctor *doctor)
{
    json_t *findings = json_array();
    for (int i = 0; i < doctor->count; i++) {
        const struct host_finding *f = &doctor->findings[i];
        json_t *item = json_pack("{s:s, s:b, s:b, s:s, s:s}", "key", f->key, "known", f->known,
                                 "doubt", f->doubt, "found", f->found, "effect", f->effect);
        if (f->remedy[0] != '\0')
            json_object_set_new(item, "remedy", json_string(f->remedy));
        json_array_append_new(findings, item);
    }
    return findings;
}
