/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Functions of the C library that the compiler calls with a path, in place of the
 * library's own: the program's come first when names are looked up. A file outside
 * the fence is one that is not there, so that not even that much can be learned
 * of it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "compiler/fence.h"

#define SHOWN __attribute__((visibility("default"), used))

static const tps_strings *fence; /* NULL: there is none yet */

void tps_fence_files(const tps_strings *roots) { fence = roots; }

/* Files and folders only: whoever opens a pipe waits. */
static bool is_plain(const char *path) {
  struct stat info;
  return syscall(SYS_newfstatat, AT_FDCWD, path, &info, 0) == 0 &&
         (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode));
}

static bool hidden(const char *path) {
  if (fence == NULL ||
      (path != NULL && tps_rtc_below(fence, path) && is_plain(path)))
    return false;
  errno = ENOENT;
  return true;
}

static bool no_right(void) {
  if (fence == NULL) return false;
  errno = EACCES;
  return true;
}

/* ---- opening ------------------------------------------------------------- */

static int open_at(int folder, const char *path, int flags, mode_t mode) {
  if ((flags & O_ACCMODE) != O_RDONLY && no_right()) return -1;
  if (hidden(path)) return -1;
  return (int)syscall(SYS_openat, folder, path, flags, mode);
}

#define OPEN(name)                                                             \
  SHOWN int name(const char *path, int flags, ...);                            \
  int name(const char *path, int flags, ...) {                                 \
    va_list more;                                                              \
    va_start(more, flags);                                                     \
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;           \
    va_end(more);                                                              \
    return open_at(AT_FDCWD, path, flags, mode);                               \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                           \
  SHOWN int name(int folder, const char *path, int flags, ...);                \
  int name(int folder, const char *path, int flags, ...) {                     \
    va_list more;                                                              \
    va_start(more, flags);                                                     \
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;           \
    va_end(more);                                                              \
    if (folder != AT_FDCWD && *path != '/' && no_right()) return -1;           \
    return open_at(folder, path, flags, mode);                                 \
  }
OPENAT(openat)
OPENAT(openat64)

static int flags_of(const char *mode) {
  bool both = false;
  for (const char *p = mode; *p != '\0'; p++) both = both || *p == '+';
  switch (*mode) {
  case 'r': return both ? O_RDWR : O_RDONLY;
  case 'a': return (both ? O_RDWR : O_WRONLY) | O_CREAT | O_APPEND;
  default: return (both ? O_RDWR : O_WRONLY) | O_CREAT | O_TRUNC;
  }
}

#define FOPEN(name)                                                            \
  SHOWN FILE *name(const char *path, const char *mode);                        \
  FILE *name(const char *path, const char *mode) {                             \
    int fd = open_at(AT_FDCWD, path, flags_of(mode) | O_CLOEXEC, 0666);        \
    FILE *file = fd >= 0 ? fdopen(fd, mode) : NULL;                            \
    if (file == NULL && fd >= 0) close(fd);                                    \
    return file;                                                               \
  }
FOPEN(fopen)
FOPEN(fopen64)

SHOWN DIR *opendir(const char *path);
DIR *opendir(const char *path) {
  int fd = open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  return fd >= 0 ? fdopendir(fd) : NULL;
}

/* ---- asking -------------------------------------------------------------- */

#define STAT(name, type, flags)                                                \
  SHOWN int name(const char *path, struct type *info);                         \
  int name(const char *path, struct type *info) {                              \
    return hidden(path)                                                        \
               ? -1                                                            \
               : (int)syscall(SYS_newfstatat, AT_FDCWD, path, info, flags);    \
  }
#define OLD_STAT(name, type, flags)                                            \
  SHOWN int name(int version, const char *path, struct type *info);            \
  int name(int version, const char *path, struct type *info) {                 \
    (void)version;                                                             \
    return hidden(path)                                                        \
               ? -1                                                            \
               : (int)syscall(SYS_newfstatat, AT_FDCWD, path, info, flags);    \
  }
STAT(stat, stat, 0)
STAT(stat64, stat64, 0)
STAT(lstat, stat, AT_SYMLINK_NOFOLLOW)
STAT(lstat64, stat64, AT_SYMLINK_NOFOLLOW)
OLD_STAT(__xstat, stat, 0)
OLD_STAT(__xstat64, stat64, 0)
OLD_STAT(__lxstat, stat, AT_SYMLINK_NOFOLLOW)
OLD_STAT(__lxstat64, stat64, AT_SYMLINK_NOFOLLOW)

SHOWN int access(const char *path, int mode);
int access(const char *path, int mode) {
  return hidden(path) ? -1 : faccessat(AT_FDCWD, path, mode, 0);
}

SHOWN int statfs(const char *path, struct statfs *info);
int statfs(const char *path, struct statfs *info) {
  return hidden(path) ? -1 : (int)syscall(SYS_statfs, path, info);
}

/* ---- doing --------------------------------------------------------------- */

SHOWN int mkdir(const char *path, mode_t mode);
int mkdir(const char *path, mode_t mode) {
  return no_right() ? -1 : mkdirat(AT_FDCWD, path, mode);
}

#define REMOVE(name, flags)                                                    \
  SHOWN int name(const char *path);                                            \
  int name(const char *path) {                                                 \
    return no_right() ? -1 : unlinkat(AT_FDCWD, path, flags);                  \
  }
REMOVE(unlink, 0)
REMOVE(remove, 0)
REMOVE(rmdir, AT_REMOVEDIR)

SHOWN int chdir(const char *path);
int chdir(const char *path) {
  return no_right() ? -1 : (int)syscall(SYS_chdir, path);
}

/* Nothing here ever starts a program. */
static int never(void) {
  errno = EACCES;
  return -1;
}

SHOWN int execv(const char *path, char *const *arguments);
int execv(const char *path, char *const *arguments) {
  (void)path, (void)arguments;
  return never();
}

SHOWN int execvp(const char *path, char *const *arguments);
int execvp(const char *path, char *const *arguments) {
  (void)path, (void)arguments;
  return never();
}

SHOWN int execve(const char *path, char *const *arguments,
                 char *const *environment);
int execve(const char *path, char *const *arguments, char *const *environment) {
  (void)path, (void)arguments, (void)environment;
  return never();
}

SHOWN int system(const char *command);
int system(const char *command) {
  (void)command;
  return never();
}

SHOWN pid_t fork(void);
pid_t fork(void) { return never(); }
