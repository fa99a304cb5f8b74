/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * A compile in another process, which has nothing of this one: it is spawned (a
 * fork of a process with threads could not do more than that safely), gets the
 * job through its standard input, a socket, and answers there. This side waits no
 * longer than the limit and believes no byte of the answer unread. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rtc/apart.h"
#include "rtc/pack.h"
#include "rtc/parts.h"

#define SLICE_MS 50 /* between looks at the interrupt */
#define LARGEST_ANSWER ((size_t)64 << 20)

typedef struct conversation {
  pid_t child;
  int fd;
  uint64_t deadline; /* ms */
  tps_packer job;
  size_t sent;
  unsigned char *answer;
  size_t size, room;
  int status; /* of the child, once it has ended; -1: not known */
} conversation;

static uint64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static uint64_t time_limit(const tps_rtc_request *r) {
  return r->max_time != 0 ? r->max_time : TPS_UNTRUSTED_TIME;
}

static uint64_t memory_limit(const tps_rtc_request *r) {
  return r->max_memory != 0 ? r->max_memory : TPS_UNTRUSTED_MEMORY;
}

/* ---- starting ------------------------------------------------------------ */

int tps_apart_move_up(int fd) {
  if (fd < 0 || fd > 2) return fd;
  int higher = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  close(fd);
  return higher;
}

/* Of the environment the child has what NVRTC's library may need to be found. */
static int spawn(const char *program, int socket, pid_t *child) {
  char *const arguments[] = {(char *)"tpstream-compiler", NULL};
  static const char variable[] = "LD_LIBRARY_PATH=";
  const char *value = getenv("LD_LIBRARY_PATH");
  char *libraries = NULL;
  if (value != NULL && asprintf(&libraries, "%s%s", variable, value) < 0)
    return ENOMEM;
  char *const environment[] = {libraries, NULL};
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t signals;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, socket, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_init(&attributes);
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setpgroup(&attributes, 0); /* no Ctrl-C of the terminal's */
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK |
                                            POSIX_SPAWN_SETSIGDEF |
                                            POSIX_SPAWN_SETPGROUP);
  int failure = posix_spawn(child, program, &actions, &attributes, arguments,
                            environment);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  free(libraries);
  return failure;
}

static int start(conversation *c, tps_error *err) {
  int pair[2];
  const char *program = tps_apart_program();
  int failure = errno;
  if (program != NULL) {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
      return tps_fail(err, TPS_IO, "cannot talk to another process: %s",
                      strerror(errno));
    int theirs = tps_apart_move_up(pair[1]);
    c->fd = tps_apart_move_up(pair[0]);
    failure =
        theirs < 0 || c->fd < 0 ? errno : spawn(program, theirs, &c->child);
    if (theirs >= 0) close(theirs);
  }
  if (program != NULL && failure == 0) return 0;
  c->child = 0;
  return tps_fail(err, TPS_COMPILER,
                  "cannot start the process in which untrusted sources are "
                  "compiled: %s",
                  strerror(failure));
}

/* ---- talking ------------------------------------------------------------- */

/* False: the other side takes no more. */
static bool send_some(conversation *c) {
  ssize_t n = send(c->fd, c->job.bytes + c->sent, c->job.size - c->sent,
                   MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n > 0) c->sent += (size_t)n;
  if (c->sent == c->job.size) shutdown(c->fd, SHUT_WR);
  return n > 0 || errno == EAGAIN || errno == EINTR;
}

/* 1: more may come, 0: that was all, -1: too much, or no memory for it. */
static int receive_some(conversation *c) {
  if (c->size == c->room) {
    size_t room = c->room ? 2 * c->room : 65536;
    unsigned char *answer =
        room <= 2 * LARGEST_ANSWER ? realloc(c->answer, room) : NULL;
    if (answer == NULL) return -1;
    c->answer = answer;
    c->room = room;
  }
  ssize_t n = recv(c->fd, c->answer + c->size, c->room - c->size, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 1;
  if (n > 0) c->size += (size_t)n;
  return n > 0 ? 1 : 0;
}

static int fail_time(const tps_rtc_request *r, tps_error *err) {
  return tps_fail(err, TPS_COMPILER,
                  "the untrusted source took longer to compile than %llu ms "
                  "(max_time)",
                  (unsigned long long)time_limit(r));
}

static int talk(conversation *c, const tps_rtc_request *r, tps_error *err) {
  bool sending = true;
  for (int more = 1; more == 1;) {
    uint64_t now = now_ms();
    if (now >= c->deadline) return fail_time(r, err);
    if (r->interrupted != NULL && r->interrupted(r->interrupted_data) != 0)
      return tps_fail(err, TPS_INTERRUPTED, "interrupted!");
    uint64_t left = c->deadline - now;
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    if (sending) p.events |= POLLOUT;
    int ready = poll(&p, 1, left < SLICE_MS ? (int)left : SLICE_MS);
    if (ready <= 0) continue;
    if (sending && (p.revents & POLLOUT) != 0)
      sending = send_some(c) && c->sent < c->job.size;
    if ((p.revents & (POLLIN | POLLHUP | POLLERR)) != 0) more = receive_some(c);
    if (more < 0)
      return tps_fail(err, TPS_COMPILER,
                      "the compiler's result is larger than %zu bytes",
                      LARGEST_ANSWER);
  }
  return 0;
}

/* ---- ending -------------------------------------------------------------- */

/* The child has closed its side or is killed: it ends soon. */
static void reap(conversation *c) {
  if (c->fd >= 0) close(c->fd);
  c->status = -1;
  if (c->child <= 0) return;
  int status;
  pid_t ended;
  do ended = waitpid(c->child, &status, 0);
  while (ended < 0 && errno == EINTR);
  if (ended == c->child) c->status = status; /* else the host has reaped it */
}

static int fail_ended(const conversation *c, const tps_rtc_request *r,
                      tps_error *err) {
  unsigned long long memory = memory_limit(r) >> 20, time = time_limit(r);
  if (c->status >= 0 && WIFSIGNALED(c->status)) {
    int number = WTERMSIG(c->status);
    if (number == SIGXCPU) return fail_time(r, err);
    return tps_fail(err, TPS_COMPILER,
                    "the compiler crashed on the untrusted source: signal %d "
                    "(%s); it may have run out of its %llu MiB (max_memory)",
                    number, strsignal(number), memory);
  }
  if (c->status >= 0 && WIFEXITED(c->status) &&
      WEXITSTATUS(c->status) == TPS_APART_NO_COMPILER)
    return tps_fail(err, TPS_COMPILER,
                    "NVRTC cannot be used in %llu MiB (max_memory)", memory);
  return tps_fail(err, TPS_COMPILER,
                  "the compiler gave no result for the untrusted source: it "
                  "may have run out of its %llu MiB (max_memory) or %llu ms "
                  "(max_time)",
                  memory, time);
}

/* What the child says is to be believed only so far. */
static int read_answer(const conversation *c, const tps_rtc_request *r,
                       tps_rtc_build *out, tps_error *err) {
  tps_unpacker u = {c->answer, c->answer + c->size, false};
  if (c->size == 0 || !tps_build_unpack(&u, out)) return fail_ended(c, r, err);
  bool fits = out->result != 0 || out->lowered.count == r->name_count;
  bool image = out->cubin == NULL ||
               (out->cubin_size > 4 && memcmp(out->cubin, "\177ELF", 4) == 0);
  bool text = out->ptx == NULL || strlen(out->ptx) == out->ptx_size;
  if (fits && image && text) return 0;
  tps_rtc_build_free(out);
  return tps_fail(err, TPS_COMPILER,
                  "the compiler's result for the untrusted source makes no "
                  "sense");
}

static bool is_out_of_memory(const tps_rtc_build *b) {
  return b->result == TPS_NVRTC_OUT_OF_MEMORY ||
         (b->result == TPS_NVRTC_COMPILATION &&
          strstr(b->log, " error: out of memory\n") != NULL);
}

/* ---- the whole ----------------------------------------------------------- */

static int converse(conversation *c, const tps_rtc_request *r,
                    tps_rtc_build *out, tps_error *err) {
  int code = start(c, err);
  if (code == 0) code = talk(c, r, err);
  if (code != 0 && c->child > 0) (void)kill(c->child, SIGKILL);
  reap(c);
  if (code == 0) code = read_answer(c, r, out, err);
  if (code == 0 && is_out_of_memory(out)) {
    tps_rtc_build_free(out);
    code = tps_fail(err, TPS_COMPILER,
                    "the compiler ran out of memory on the untrusted source: "
                    "%llu MiB (max_memory)",
                    (unsigned long long)(memory_limit(r) >> 20));
  }
  return code;
}

int tps_rtc_run_apart(const tps_compiler *compiler,
                      const tps_rtc_request *request,
                      const tps_strings *options, const tps_strings *names,
                      tps_rtc_build *out, tps_error *err) {
  conversation c = {.fd = -1, .deadline = now_ms() + time_limit(request)};
  tps_rtc_request limited = *request;
  tps_strings roots = {0};
  memset(out, 0, sizeof *out);
  limited.max_memory = memory_limit(request);
  limited.max_time = time_limit(request);
  bool packed = tps_rtc_roots(compiler, request, &roots);
  if (packed)
    tps_job_pack(&c.job, compiler->path, &roots, &limited, options, names);
  int code = packed && !c.job.failed
                 ? converse(&c, request, out, err)
                 : tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  tps_strings_free(&roots);
  free(c.job.bytes);
  free(c.answer);
  return code;
}
