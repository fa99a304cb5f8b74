/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The program in which untrusted sources are compiled, a part of command and
 * module (rtc/program.c). It reads one job, loads the compiler and lets it compile
 * a trivial program, so that it has all it needs; then it gives up its rights, and
 * only then looks at the source. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "compiler/fence.h"
#include "rtc/apart.h"
#include "rtc/pack.h"
#include "rtc/parts.h"

#define LARGEST_JOB ((size_t)1 << 30)

/* ---- descriptor 0 -------------------------------------------------------- */

static unsigned char *read_all(size_t *size) {
  unsigned char *bytes = NULL;
  size_t have = 0, room = 0;
  for (;;) {
    if (have == room) {
      room = room ? 2 * room : 65536;
      unsigned char *more = room <= LARGEST_JOB ? realloc(bytes, room) : NULL;
      if (more == NULL) break;
      bytes = more;
    }
    ssize_t n = read(0, bytes + have, room - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    if (n == 0) {
      *size = have;
      return bytes;
    }
    have += (size_t)n;
  }
  free(bytes);
  return NULL;
}

static bool write_all(const unsigned char *bytes, size_t size) {
  while (size > 0) {
    ssize_t n = write(0, bytes, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes += n;
    size -= (size_t)n;
  }
  return true;
}

/* ---- limits -------------------------------------------------------------- */

static void limit(int resource, uint64_t most) {
  struct rlimit r = {most, most};
  setrlimit((__rlimit_resource_t)resource, &r);
}

static void set_limits(const tps_rtc_request *r) {
  limit(RLIMIT_AS, r->max_memory);
  limit(RLIMIT_CPU, r->max_time / 1000 + 1);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_NOFILE, 256);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_DUMPABLE, 0);
}

/* What the host had open and forgot to mark is not for us. */
static void close_others(void) {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, 3u, ~0u, 0u) == 0) return;
#endif
  for (int fd = 3; fd < 65536; fd++) (void)close(fd);
}

/* ---- the work ------------------------------------------------------------ */

/* Loads whatever the compiler loads when it first compiles. */
static const tps_nvrtc *load_compiler(const tps_rtc_job *job) {
  tps_error err;
  tps_strings options = {0};
  static const tps_strings none;
  tps_rtc_build build;
  tps_rtc_request trivial = {.source = "__global__ void k() {}",
                             .source_size = 22};
  setenv("TPSTREAM_NVRTC", job->library, 1);
  const tps_nvrtc *nvrtc = tps_nvrtc_open(&err);
  if (nvrtc == NULL) return NULL;
  for (size_t i = 0; i < job->options.count; i++)
    if (strncmp(job->options.items[i], "-arch=", 6) == 0)
      tps_strings_add(&options, job->options.items[i]);
  int code = tps_rtc_run(nvrtc, &trivial, &options, &none, &build, &err);
  tps_strings_free(&options);
  return code == 0 ? nvrtc : NULL;
}

static int compile(const tps_nvrtc *nvrtc, const tps_rtc_job *job) {
  tps_error err;
  tps_rtc_build build;
  tps_packer answer = {0};
  tps_rtc_request r = job->request;
  r.options = (const char *const *)job->options.items;
  r.option_count = job->options.count;
  if (tps_rtc_run(nvrtc, &r, &job->options, &job->names, &build, &err) != 0) {
    build =
        (tps_rtc_build){.result = TPS_NVRTC_OUT_OF_MEMORY, .log = (char *)""};
  }
  tps_build_pack(&answer, &build);
  if (answer.failed || !write_all(answer.bytes, answer.size))
    return TPS_APART_NO_ANSWER;
  return TPS_APART_DONE;
}

int main(void) {
  size_t size;
  tps_rtc_job job;
  close_others();
  unsigned char *bytes = read_all(&size);
  tps_unpacker u = {bytes, bytes + (bytes != NULL ? size : 0), false};
  if (bytes == NULL || !tps_job_unpack(&u, &job)) _exit(TPS_APART_BAD_JOB);
  free(bytes);
  set_limits(&job.request);
  const tps_nvrtc *nvrtc = load_compiler(&job);
  if (nvrtc == NULL) _exit(TPS_APART_NO_COMPILER);
  tps_fence_files(&job.roots);
  tps_fence_kernel(&job.roots);
  _exit(compile(nvrtc, &job)); /* nothing that the source left runs any more */
}
