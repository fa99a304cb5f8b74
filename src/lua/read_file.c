/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * tp.read_file: a file's bytes, read straight into page-locked memory. What has no
 * size of its own (a pipe, a terminal, files of /proc), or a wrong one (sysfs), is
 * read to its end first. */
#include "lua/buffer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_AGAIN_MS 100 /* for a Ctrl-C that came just before a wait */

/* What of which file. */
typedef struct request {
  const char *path;
  int dtype;
  int64_t offset; /* bytes to leave out */
  int64_t count;  /* elements; -1: all there are */
} request;

static _Noreturn void failed(lua_State *L, const char *what, const request *r,
                             int number) {
  tps_error err;
  tps_fail(&err, TPS_IO, "cannot %s '%s': %s", what, r->path, strerror(number));
  tps_raise(L, &err);
}

static void close_file(void *data) { fclose((FILE *)data); }

/* A signal came: Ctrl-C is raised. */
static void check_interrupt(lua_State *L) {
  tps_context *context = tps_lua_of(L)->context;
  tps_error err;
  if (context->interrupted == NULL ||
      !context->interrupted(context->interrupted_data))
    return;
  tps_fail(&err, TPS_INTERRUPTED, "interrupted!");
  tps_raise(L, &err);
}

/* Of a pipe that waits until there is a writer. */
static int open_file(lua_State *L, const request *r) {
  tps_guard *guard = tps_guard_push(L);
  FILE *file;
  while ((file = fopen(r->path, "rbe")) == NULL && errno == EINTR)
    check_interrupt(L);
  if (file == NULL) failed(L, "open", r, errno);
  guard->data = file;
  guard->release = close_file;
  return fileno(file);
}

/* Elements to read of a file that goes on for `bytes` after the offset. */
static int64_t count_in(lua_State *L, const request *r, int64_t bytes) {
  int size = tps_dtype_sizes[r->dtype];
  const char *type = tps_dtype_names[r->dtype];
  if (bytes < 0)
    tps_misuse(L, "'%s': offset %lld of %lld bytes", r->path,
               (long long)r->offset, (long long)bytes + (long long)r->offset);
  if (r->count < 0 && bytes % size != 0)
    tps_misuse(L,
               "'%s': %lld bytes are no whole number of %s elements (%d bytes "
               "each)",
               r->path, (long long)bytes, type, size);
  if (r->count > bytes / size)
    tps_misuse(L, "'%s': %lld elements of %s asked for, the file has %lld",
               r->path, (long long)r->count, type, (long long)bytes / size);
  return r->count < 0 ? bytes / size : r->count;
}

/* A read that signals do not end, of at most a gigabyte (some systems take no
 * more than two at once); 0 at the end of the file. */
static size_t read_some(lua_State *L, const request *r, int fd, char *to,
                        size_t bytes) {
  size_t most = (size_t)1 << 30;
  ssize_t n;
  do n = read(fd, to, bytes < most ? bytes : most);
  while (n < 0 && errno == EINTR);
  if (n < 0) failed(L, "read", r, errno);
  return (size_t)n;
}

/* Unlike read(), never begun again by itself after a signal. */
static void wait_readable(lua_State *L, int fd) {
  struct pollfd p = {.fd = fd, .events = POLLIN};
  do check_interrupt(L);
  while (poll(&p, 1, LOOK_AGAIN_MS) <= 0);
}

static tps_lua_buffer *push_pinned(lua_State *L, const request *r,
                                   int64_t count, tps_device *device) {
  tps_lua_buffer *box = tps_push_buffer(L, r->dtype, count);
  tps_site_set(L, tps_lua_of(L));
  tps_buffer_pin(L, box, device, false);
  return box;
}

/* The most bytes that are needed: some devices never end. */
static uint64_t enough(const request *r) {
  uint64_t bytes;
  if (r->count < 0 || __builtin_mul_overflow((uint64_t)r->count,
                                             tps_dtype_sizes[r->dtype], &bytes))
    return UINT64_MAX;
  return bytes;
}

/* Reads what is before the offset, as far as the file goes; how much of it
 * there is not. */
static int64_t skip(lua_State *L, const request *r, int fd) {
  char unused[LUAL_BUFFERSIZE];
  int64_t left = r->offset;
  size_t n = 1;
  for (; left > 0 && n > 0; left -= (int64_t)n) {
    wait_readable(L, fd);
    n = read_some(L, r, fd, unused,
                  left < LUAL_BUFFERSIZE ? (size_t)left : LUAL_BUFFERSIZE);
  }
  return left;
}

static void read_stream(lua_State *L, const request *r, int fd,
                        tps_device *device) {
  luaL_Buffer b;
  size_t n = 1;
  int64_t missing = skip(L, r, fd);
  luaL_buffinit(L, &b);
  for (uint64_t left = missing == 0 ? enough(r) : 0; left > 0 && n > 0;
       left -= n) {
    size_t most = left < LUAL_BUFFERSIZE ? (size_t)left : LUAL_BUFFERSIZE;
    wait_readable(L, fd);
    n = read_some(L, r, fd, luaL_prepbuffer(&b), most);
    luaL_addsize(&b, n);
  }
  luaL_pushresult(&b); /* text */
  int64_t count = count_in(L, r, (int64_t)lua_rawlen(L, -1) - missing);
  tps_lua_buffer *box = push_pinned(L, r, count, device);
  if (count > 0)
    memcpy(box->memory->host, lua_tostring(L, -2), tps_buffer_bytes(box));
}

/* A size may be wrong, as those of sysfs are: then what there is counts. */
static void read_regular(lua_State *L, const request *r, int fd, int64_t size,
                         tps_device *device) {
  int64_t count = count_in(L, r, size - r->offset);
  tps_lua_buffer *box = push_pinned(L, r, count, device);
  size_t bytes = tps_buffer_bytes(box), done = 0, n = 1;
  if (bytes > 0 && lseek(fd, r->offset, SEEK_SET) < 0)
    failed(L, "read", r, errno);
  for (; done < bytes && n > 0; done += n)
    n = read_some(L, r, fd, (char *)box->memory->host + done, bytes - done);
  if (done == bytes) return;
  tps_memory_close(box->memory);
  box->memory = NULL;
  lua_pop(L, 1);
  if (lseek(fd, 0, SEEK_SET) < 0) failed(L, "read", r, errno);
  read_stream(L, r, fd, device);
}

static void read_options(lua_State *L, request *r) {
  r->offset = tps_option_integer(L, 3, "offset", 0);
  r->count = tps_option_integer(L, 3, "count", -1);
  if (r->offset < 0)
    tps_option_error(L, 3, "offset", "must not be negative, got %lld",
                     (long long)r->offset);
  if (r->count < 0 && tps_option(L, 3, "count") != LUA_TNIL)
    tps_option_error(L, 3, "count", "must not be negative, got %lld",
                     (long long)r->count);
  lua_settop(L, 3);
}

int tps_buffer_read_file(lua_State *L) {
  static const char *const names[] = {"offset", "count", "device", NULL};
  request r = {.path = tps_check_string(L, 1), .dtype = TPS_UINT8};
  struct stat about;
  tps_open(L);
  lua_settop(L, 3);
  if (!lua_isnil(L, 2)) r.dtype = tps_check_dtype(L, 2);
  tps_check_options(L, 3, names);
  read_options(L, &r);
  tps_device *device = tps_option_device(L, 3, "device");
  if (device == NULL) device = tps_current_device(L);
  int fd = open_file(L, &r);
  tps_guard *guard = (tps_guard *)lua_touserdata(L, -1);
  if (fstat(fd, &about) != 0) failed(L, "read", &r, errno);
  if (S_ISDIR(about.st_mode)) failed(L, "read", &r, EISDIR);
  if (S_ISREG(about.st_mode) && about.st_size > 0)
    read_regular(L, &r, fd, (int64_t)about.st_size, device);
  else read_stream(L, &r, fd, device);
  tps_guard_release(guard);
  return 1;
}
