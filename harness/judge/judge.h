/* The gate: all pages of the contract against one server, with a verdict a page. An entry is judged
 * on fresh processes of its own; another server as it stands, without the cases that need its
 * process.
 *
 * Variants run side by side, JUDGE_WORKERS at once, so that what must be waited for is waited for
 * together; the faults of many connections follow one by one.
 */
#ifndef JUDGE_JUDGE_H
#define JUDGE_JUDGE_H

#include "entry/entry.h"
#include "judge/page.h"
#include "judge/talk.h"

#include <signal.h>

#define JUDGE_WORKERS 32

enum judge_verdict {
    JUDGE_PASSED,
    JUDGE_NOTED,  /* passed, with a note */
    JUDGE_WAIVED, /* fell short, and the manifest says that it may */
    JUDGE_FAILED,
    JUDGE_SKIPPED /* needs a process of ours, or a stop came first */
};

struct judge_result {
    const struct page *page;
    enum judge_verdict verdict;
    const char *variant; /* title of the one that fell short or is noted; NULL otherwise */
    char *waiver;        /* its reason, also of a case that passes in spite of it; or NULL */
    struct talk_outcome outcome;
    size_t order; /* of that variant, split as it was, on its page */
};

struct judge_report {
    struct judge_result *results; /* in the order of the pages */
    size_t count;
    unsigned passed; /* noted ones too */
    unsigned total;  /* without those skipped */
    unsigned gate_failed;
    unsigned waived;
};

struct judge_options {
    const struct page_list *pages; /* borrowed by the report */
    const char *const *cases;      /* only these ids */
    size_t case_count;             /* 0: all */
    bool slow;                     /* those marked slow too */
    bool gate_only;                /* only those that gate */
    uint64_t seed;                 /* of all that is random */
    const volatile sig_atomic_t *stop;
};

/* Both fill *report (judge_report_free), or return -errno: the server could not be started, never
 * answered. An entry's process that ends on the way is a result: the case that ended it fails.
 * -EINVAL with the ids there are for an unknown case, -ENOENT for a waiver of one. */
int judge_entry(const struct judge_options *options, const struct entry *entry,
                struct judge_report *report, struct err *err);
int judge_address(const struct judge_options *options, const struct sockaddr_in *address,
                  struct judge_report *report, struct err *err);
void judge_report_free(struct judge_report *report);

/* Raises this process's own limit of descriptors to what the cases want, as far as it may. */
void judge_raise_files(void);

/* One line for a table: the first gating case that failed, as "E02: variant: problem". "" if none.
 */
void judge_first_failure(const struct judge_report *report, char *text, size_t bytes);

#endif
