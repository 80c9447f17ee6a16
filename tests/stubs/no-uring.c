/* Runs a program as on a machine that refuses io_uring, for the tests of the harness.
 *
 *   no-uring ERRNO PROGRAM [ARGUMENT...]
 *
 * io_uring_setup(2) fails with that errno: 1 (EPERM) is what Docker's default seccomp profile and
 * kernel.io_uring_disabled give, 38 (ENOSYS) what a kernel before 5.1 does.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 3) {
        fputs("usage: no-uring ERRNO PROGRAM [ARGUMENT...]\n", stderr);
        return 2;
    }
    unsigned refusal = SECCOMP_RET_ERRNO | ((unsigned)atoi(argv[1]) & SECCOMP_RET_DATA);
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, refusal),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof rules / sizeof *rules, .filter = rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
        perror("no-uring: seccomp");
        return 125;
    }
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
