#include "trial/gate.h"
#include "base/mem.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A case mostly waits, so more entries than cores are judged at once. */
enum { AT_ONCE = 6 };

struct gate {
    const struct judge_options *options;
    struct gate_subject *subjects;
    size_t count;
    _Atomic size_t next;
    const struct gate_watch *watch;
    pthread_mutex_t telling;
    size_t done, wanted;
};

static json_t *to_json(const struct entry *entry, const struct judge_report *report)
{
    json_t *failed = json_array();
    json_t *waived = json_array();
    json_t *waivers = json_object();
    for (size_t i = 0; i < report->count; i++) {
        const struct judge_result *r = &report->results[i];
        if (r->verdict == JUDGE_FAILED)
            json_array_append_new(failed, json_string(r->page->id));
        if (r->verdict != JUDGE_WAIVED)
            continue;
        json_array_append_new(waived, json_string(r->page->id));
        json_object_set_new(waivers, r->page->id, json_string(r->waiver));
    }
    return json_pack("{s:s, s:s, s:i, s:i, s:o, s:o, s:o}", "type", "gate", "entry", entry->name,
                     "passed", (int)report->passed, "total", (int)report->total, "failed", failed,
                     "waived", waived, "waivers", waivers);
}

static char *refusal(const struct entry *entry, const struct judge_report *report)
{
    char first[1024];
    judge_first_failure(report, first, sizeof first);
    /* Of a build that is compared the name is "libev old": the command takes the entry's. */
    int name = (int)strcspn(entry->name, " ");
    if (report->gate_failed == 1)
        return mem_format("fails the contract's %s; more: showdown check %.*s", first, name,
                          entry->name);
    return mem_format("fails %u cases of the contract, first %s; more: showdown check %.*s",
                      report->gate_failed, first, name, entry->name);
}

static void judge_one(const struct gate *gate, struct gate_subject *subject)
{
    struct judge_report report;
    struct err err;
    bool reference = subject->entry->status == ENTRY_REFERENCE;
    int status = judge_entry(gate->options, subject->entry, &report, &err);
    if (status != 0) {
        subject->lacks = status == -ENOTSUP;
        subject->refused = gate->options->stop == NULL || *gate->options->stop == 0;
        subject->problem = mem_copy_string(err.text);
        return;
    }
    if (gate->options->stop == NULL || *gate->options->stop == 0) {
        subject->line = to_json(subject->entry, &report);
        subject->refused = report.gate_failed > 0 && !reference;
        if (subject->refused)
            subject->problem = refusal(subject->entry, &report);
    }
    judge_report_free(&report);
}

static void tell(struct gate *gate, const struct entry *entry)
{
    pthread_mutex_lock(&gate->telling);
    gate->watch->judged(gate->watch->context, entry, ++gate->done, gate->wanted);
    pthread_mutex_unlock(&gate->telling);
}

static void *work(void *context)
{
    struct gate *gate = context;
    for (size_t i; (i = atomic_fetch_add(&gate->next, 1)) < gate->count;) {
        bool stopped = gate->options->stop != NULL && *gate->options->stop != 0;
        if (gate->subjects[i].skip || stopped)
            continue;
        judge_one(gate, &gate->subjects[i]);
        tell(gate, gate->subjects[i].entry);
    }
    return NULL;
}

void gate_run(const struct judge_options *options, const struct gate_watch *watch,
              struct gate_subject *subjects, size_t count)
{
    struct gate gate = {.options = options,
                        .subjects = subjects,
                        .count = count,
                        .watch = watch,
                        .telling = PTHREAD_MUTEX_INITIALIZER};
    for (size_t i = 0; i < count; i++)
        gate.wanted += !subjects[i].skip;
    pthread_t threads[AT_ONCE];
    size_t started = 0;
    judge_raise_files();
    while (started < AT_ONCE && started < count &&
           pthread_create(&threads[started], NULL, work, &gate) == 0)
        started++;
    if (started == 0)
        work(&gate);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}
