/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The program of src/compiler, which is a part of this one's file: so command and
 * module stay one file each, and in whose process the module may be does not
 * matter. It becomes a file in memory, sealed, or where that can't be executed a
 * temporary one. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rtc/parts.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x10u /* Linux 6.3: even where files in memory have no x */
#endif

__asm__(".pushsection .rodata\n"
        ".balign 16\n"
        ".globl tps_compiler_program\n"
        ".hidden tps_compiler_program\n"
        "tps_compiler_program:\n"
        ".incbin \"" TPS_COMPILER_PROGRAM "\"\n"
        "0:\n"
        ".balign 8\n"
        ".globl tps_compiler_program_size\n"
        ".hidden tps_compiler_program_size\n"
        "tps_compiler_program_size:\n"
        ".quad 0b - tps_compiler_program\n"
        ".popsection\n");

extern const char tps_compiler_program[];
extern const uint64_t tps_compiler_program_size;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *made;
static struct stat made_info; /* whoever closes all descriptors closes ours */

static bool write_all(int fd) {
  size_t done = 0, size = (size_t)tps_compiler_program_size;
  while (done < size) {
    ssize_t n = write(fd, tps_compiler_program + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += (size_t)n;
  }
  return true;
}

/* The descriptor stays open for ever. */
static char *in_memory(void) {
  int fd = memfd_create("tpstream-compiler",
                        MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
  if (fd < 0 && errno == EINVAL)
    fd = memfd_create("tpstream-compiler", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  fd = tps_apart_move_up(fd);
  char *path = NULL;
  if (fd < 0) return NULL;
  if (!write_all(fd) ||
      fcntl(fd, F_ADD_SEALS,
            F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0 ||
      asprintf(&path, "/proc/self/fd/%d", fd) < 0 || access(path, X_OK) != 0) {
    free(path);
    close(fd);
    return NULL;
  }
  return path;
}

static char *temporary;

static void remove_temporary(void) {
  if (temporary != NULL) (void)unlink(temporary);
}

static char *in_folder(void) {
  const char *folder = getenv("TMPDIR");
  char *path;
  if (folder == NULL || *folder == '\0') folder = "/tmp";
  if (asprintf(&path, "%s/tpstream-compiler-XXXXXX", folder) < 0) return NULL;
  int fd = mkostemp(path, O_CLOEXEC);
  if (fd >= 0 && write_all(fd) && fchmod(fd, 0500) == 0 && close(fd) == 0) {
    if (temporary == NULL) atexit(remove_temporary);
    free(temporary);
    temporary = strdup(path);
    return path;
  }
  if (fd >= 0) (void)unlink(path);
  free(path);
  return NULL;
}

const char *tps_apart_program(void) {
  struct stat now;
  pthread_mutex_lock(&lock);
  if (made != NULL &&
      (stat(made, &now) != 0 || now.st_ino != made_info.st_ino ||
       now.st_dev != made_info.st_dev)) {
    free(made);
    made = NULL;
  }
  if (made == NULL) {
    made = in_memory();
    if (made == NULL) made = in_folder();
    if (made != NULL) (void)stat(made, &made_info);
  }
  const char *path = made;
  pthread_mutex_unlock(&lock);
  return path;
}
