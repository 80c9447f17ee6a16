/* One manifest read into a struct entry. Private to entry/.
 */
#ifndef ENTRY_CONF_H
#define ENTRY_CONF_H

#include "entry/entry.h"

/* Reads root/servers/<name>/entry.conf into *entry, all strings owned by it, whether it fails or
 * not (entry_conf_free). Does not look whether it is ready. -ENOENT if the file isn't there,
 * -EINVAL with "servers/<name>/entry.conf:LINE: …" for one that breaks a rule. */
int entry_conf_read(const char *root, const char *name, struct entry *entry, struct err *err);
void entry_conf_free(struct entry *entry);

/* Copies the next word at *at (words are split on blanks) into a new string and moves *at behind
 * it; NULL at the end. */
char *entry_next_word(const char **at);

#endif
