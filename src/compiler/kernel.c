/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Landlock: no file but those below the roots, and these to read only; no network.
 * seccomp: no system call but those that a compile makes. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "compiler/fence.h"

/* ---- Landlock ------------------------------------------------------------ */

/* As the kernel has them, whichever headers there are. */
enum {
  CREATE_RULESET = 444,
  ADD_RULE = 445,
  RESTRICT_SELF = 446,
  RULE_PATH_BENEATH = 1,
  ASK_VERSION = 1,
  READ_FILE = 1 << 2,
  READ_FOLDER = 1 << 3
};

typedef struct ruleset {
  uint64_t files, network, scopes;
} ruleset;

typedef struct __attribute__((packed)) beneath {
  uint64_t allowed;
  int32_t folder;
} beneath;

static void add_root(int rules, const char *root) {
  beneath rule = {READ_FILE | READ_FOLDER, -1};
  rule.folder = (int)syscall(SYS_openat, AT_FDCWD, root, O_PATH | O_CLOEXEC, 0);
  if (rule.folder < 0) return;
  (void)syscall(ADD_RULE, rules, RULE_PATH_BENEATH, &rule, 0);
  (void)close(rule.folder);
}

static void restrict_files(const tps_strings *roots) {
  long version = syscall(CREATE_RULESET, NULL, 0, ASK_VERSION);
  if (version < 1) return;
  ruleset all = {.files = ((uint64_t)1 << 13) - 1};
  size_t size = sizeof all.files;
  if (version >= 2) all.files |= (uint64_t)1 << 13;
  if (version >= 3) all.files |= (uint64_t)1 << 14;
  if (version >= 5) all.files |= (uint64_t)1 << 15;
  if (version >= 4) {
    all.network = 3;
    size = offsetof(ruleset, scopes);
  }
  if (version >= 6) {
    all.scopes = 3;
    size = sizeof all;
  }
  int rules = (int)syscall(CREATE_RULESET, &all, size, 0);
  if (rules < 0) return;
  for (size_t i = 0; i < roots->count; i++) add_root(rules, roots->items[i]);
  (void)syscall(RESTRICT_SELF, rules, 0);
  (void)close(rules);
}

/* ---- seccomp ------------------------------------------------------------- */

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

/* clang-format off */
static const unsigned short calls[] = {
    SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_close,
    SYS_lseek, SYS_openat, SYS_newfstatat, SYS_fstat, SYS_statfs, SYS_fstatfs,
    SYS_readlinkat, SYS_faccessat, SYS_getdents64, SYS_getcwd, SYS_fcntl,
    SYS_brk, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise,
    SYS_futex, SYS_getrandom, SYS_clock_gettime, SYS_clock_getres,
    SYS_gettimeofday, SYS_times, SYS_getrusage, SYS_sysinfo, SYS_uname,
    SYS_sched_get_priority_max, SYS_sched_get_priority_min,
    SYS_sched_getaffinity, SYS_sched_yield, SYS_rt_sigaction,
    SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack, SYS_prlimit64,
    SYS_getrlimit, SYS_getpid, SYS_gettid, SYS_getuid, SYS_geteuid, SYS_tgkill,
    SYS_exit, SYS_exit_group, SYS_restart_syscall,
#if defined(__x86_64__)
    SYS_open, SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_time,
#endif
#ifdef SYS_statx
    SYS_statx,
#endif
#ifdef SYS_faccessat2
    SYS_faccessat2,
#endif
#ifdef SYS_rseq
    SYS_rseq,
#endif
};
/* clang-format on */
#define CALLS (sizeof calls / sizeof calls[0])

/* Every other call fails as one that is not permitted. */
static void restrict_calls(void) {
#ifdef ARCHITECTURE
  struct sock_filter program[CALLS + 6];
  size_t n = 0;
  program[n++] = (struct sock_filter)BPF_STMT(
      BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
  program[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                              ARCHITECTURE, 1, 0);
  program[n++] =
      (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL);
  program[n++] = (struct sock_filter)BPF_STMT(
      BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (size_t i = 0; i < CALLS; i++)
    program[n++] = (struct sock_filter)BPF_JUMP(
        BPF_JMP | BPF_JEQ | BPF_K, calls[i], (unsigned char)(CALLS - i), 0);
  program[n++] =
      (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
  program[n++] =
      (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog filter = {(unsigned short)n, program};
  (void)prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
#endif
}

void tps_fence_kernel(const tps_strings *roots) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return;
  restrict_files(roots);
  restrict_calls();
}
