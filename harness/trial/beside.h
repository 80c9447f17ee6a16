/* Conversations beside the load. The load generator holds every answer against the contract, but it
 * sends whole requests without bodies; so while a server is warmed up, the pages that say so
 * ("load: yes", judge/page.h) are carried out beside it: pipelined, cut, with bodies. They end
 * before the first slice and take nothing from it.
 */
#ifndef TRIAL_BESIDE_H
#define TRIAL_BESIDE_H

#include "entry/entry.h"
#include "judge/page.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct beside;

/* Starts carrying out the pages for load but those that `entry` waives, over and over, on one
 * connection at a time from `cpu` (-1: not pinned), against 127.0.0.1:port. NULL if there is
 * nothing to carry out. `pages` and `entry` are borrowed until beside_end. */
struct beside *beside_start(const struct page_list *pages, const struct entry *entry, unsigned port,
                            int cpu, uint64_t seed);

/* Ends it when each page was carried out once at least; where a conversation went wrong, or with
 * `at_once`, as soon as the present one is over. True if all went well; else what was expected and
 * what came in `why`. *conversations: how many there were. Takes NULL, of which all went well. */
bool beside_end(struct beside *beside, bool at_once, unsigned *conversations, char *why,
                size_t why_bytes);

#endif
