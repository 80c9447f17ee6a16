#include "cli/cli.h"
#include "trial/part.h"

int cli_read_entries(const struct cli *cli, struct entry_list *list, struct err *err)
{
    int status = entry_list_read(cli->root, cli->build, list, err);
    if (status != 0)
        return status;
    status = part_check(list, err);
    if (status != 0)
        entry_list_free(list);
    return status;
}
