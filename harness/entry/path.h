/* Programs on PATH. Private to entry/.
 */
#ifndef ENTRY_PATH_H
#define ENTRY_PATH_H

/* Where execvp(3) would find `program`: itself when it holds a slash, else the first executable
 * file of that name in a folder of PATH. NULL if there is none; free(). */
char *entry_program_find(const char *program);

#endif
