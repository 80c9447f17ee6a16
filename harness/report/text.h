/* Text of a record, which may be a foreign one: a name or a reason must not drive the terminal that
 * shows it, nor the Markdown around it.
 */
#ifndef REPORT_TEXT_H
#define REPORT_TEXT_H

#include <stddef.h>
#include <stdio.h>

/* Writes `size` bytes of UTF-8. Control characters (C0, DEL, and C1, which is U+0080 to U+009F:
 * ECMA-48) become '?', also tabs and newlines unless they are in `keep`. */
void text_print(FILE *out, const char *text, size_t size, const char *keep);

/* The same into a buffer, cut to fit. */
void text_copy(char *to, size_t size, const char *from);

/* And as a value, for an argument of printf: text_shown(name).text. */
struct text_shown {
    char text[160];
};
struct text_shown text_shown(const char *text);

/* Writes text with a backslash before what Markdown would take for more than itself, the table's |
 * included (CommonMark 0.31 section 2.4, GFM section 4.10). Control characters as above. */
void text_print_markdown(FILE *out, const char *text, size_t size);

/* Characters of UTF-8, which is columns for the names we print. */
size_t text_width(const char *text);

/* "1 boot", "2 boots". */
struct text_shown text_count(unsigned long count, const char *thing);

#endif
