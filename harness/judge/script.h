/* What a page sends, made into bytes: placeholders filled from a seeded generator, and marks where
 * the sending rests or the connection ends. The same seed gives the same bytes. Private to judge/.
 */
#ifndef JUDGE_SCRIPT_H
#define JUDGE_SCRIPT_H

#include "judge/page.h"
#include "stats/random.h"

/* So long a segment rests before the next, that a server that waits for it reads them apart. */
#define SCRIPT_SPLIT_NS UINT64_C(4000000)
#define SCRIPT_BYTE_NS  UINT64_C(1500000) /* the same between single bytes */

enum script_act { SCRIPT_REST, SCRIPT_HALF_CLOSE, SCRIPT_RESET };

struct script_mark {
    size_t at; /* the bytes before it go out first */
    enum script_act act;
    uint64_t rest_ns;
};

struct script {
    char *bytes;
    size_t size, room;
    struct script_mark *marks; /* in the order of `at` */
    size_t mark_count;
    unsigned times; /* what `as-often` means: the last `times` of more than one block, or 1 */
};

/* Appends what `step` sends. `split_at`: for SPLIT_EVERYWHERE, the bytes of this step in the first
 * segment. Starts from a zeroed struct. */
void script_add(struct script *script, const struct page_step *step, const char *host,
                size_t split_at, struct random *random);
void script_clear(struct script *script);

#endif
