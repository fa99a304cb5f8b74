/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Entries in a folder. A file is: a mark, the checksum of all that follows, the
 * size of the content, the key, the content. */
#include "rtc/store.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MARK "tpstream cache 1\n"
#define MARK_SIZE (sizeof MARK - 1)
#define SUFFIX ".entry"
#define KEY_SIZE (TPS_DIGEST_TEXT - 1)
#define SIZE_AT (MARK_SIZE + TPS_DIGEST_SIZE)
#define HEAD_SIZE (SIZE_AT + 8 + KEY_SIZE)
#define LARGEST ((uint64_t)1 << 31)
#define DEFAULT_LIMIT ((uint64_t)1 << 30)
#define STALE_SECONDS 3600 /* a file being written is finished by then */

/* ---- where --------------------------------------------------------------- */

static int read_limit(uint64_t *limit, tps_error *err) {
  const char *text = getenv("TPSTREAM_CACHE_SIZE");
  *limit = DEFAULT_LIMIT;
  if (text == NULL || *text == '\0') return 0;
  char *end;
  errno = 0;
  unsigned long long value = strtoull(text, &end, 10);
  static const char units[] = "KMG";
  const char *unit = strchr(units, toupper((unsigned char)*end));
  int shift = 0;
  if (*end != '\0' && unit != NULL) {
    shift = 10 * (int)(unit - units + 1);
    end++;
  }
  bool fits = errno == 0 && value <= UINT64_MAX >> shift;
  if (!isdigit((unsigned char)*text) || *end != '\0' || !fits)
    return tps_fail(
        err, TPS_MISUSE,
        "TPSTREAM_CACHE_SIZE is '%.100s' (a number of bytes such as "
        "200000000, 512M or 2G is expected)",
        text);
  *limit = (uint64_t)value << shift;
  return 0;
}

static char *joined(const char *a, const char *b) {
  char *text;
  return asprintf(&text, "%s%s", a, b) < 0 ? NULL : text;
}

static char *find_folder(const char **why) {
  const char *off = getenv("TPSTREAM_CACHE");
  const char *own = getenv("TPSTREAM_CACHE_DIR");
  const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (off != NULL && strcmp(off, "0") == 0) {
    *why = "turned off by TPSTREAM_CACHE=0";
    return NULL;
  }
  if (own != NULL && *own != '\0') return joined(own, "");
  if (base != NULL && *base == '/') return joined(base, "/tpstream");
  if (home != NULL && *home == '/') return joined(home, "/.cache/tpstream");
  *why = "there is no home folder (TPSTREAM_CACHE_DIR names another)";
  return NULL;
}

int tps_store_open(tps_store *store, tps_error *err) {
  store->why = "out of host memory";
  store->folder = NULL;
  int code = read_limit(&store->limit, err);
  if (code == 0) store->folder = find_folder(&store->why);
  return code;
}

void tps_store_close(tps_store *store) {
  free(store->folder);
  store->folder = NULL;
}

/* With the folders above it, readable by their owner alone. */
static bool make_folder(const char *path) {
  char *copy = strdup(path);
  if (copy == NULL) return false;
  for (char *p = copy + 1; *p != '\0'; p++) {
    if (*p != '/') continue;
    *p = '\0';
    (void)mkdir(copy, 0700);
    *p = '/';
  }
  bool there = mkdir(copy, 0700) == 0 || errno == EEXIST;
  int why = errno;
  free(copy);
  errno = why;
  return there;
}

bool tps_store_usable(const tps_store *store) {
  struct stat info;
  if (!make_folder(store->folder)) return false;
  if (stat(store->folder, &info) != 0) return false;
  if (!S_ISDIR(info.st_mode)) {
    errno = ENOTDIR;
    return false;
  }
  return access(store->folder, W_OK | X_OK) == 0;
}

static char *entry_path(const tps_store *store, const char *key) {
  char *path;
  return asprintf(&path, "%s/%s" SUFFIX, store->folder, key) < 0 ? NULL : path;
}

/* ---- reading ------------------------------------------------------------- */

/* All of the file, NULL if that is not to be had. */
static unsigned char *read_file(int fd, size_t *size) {
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) ||
      info.st_size < (off_t)HEAD_SIZE || (uint64_t)info.st_size > LARGEST)
    return NULL;
  size_t have = 0, all = (size_t)info.st_size;
  unsigned char *bytes = malloc(all);
  while (bytes != NULL && have < all) {
    ssize_t n = read(fd, bytes + have, all - have);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    have += (size_t)n;
  }
  if (have == all) {
    *size = all;
    return bytes;
  }
  free(bytes);
  return NULL;
}

static bool is_whole(const unsigned char *bytes, size_t size, const char *key) {
  unsigned char sum[TPS_DIGEST_SIZE];
  uint64_t content;
  if (memcmp(bytes, MARK, MARK_SIZE) != 0) return false;
  tps_digest_of(bytes + SIZE_AT, size - SIZE_AT, sum);
  memcpy(&content, bytes + SIZE_AT, sizeof content);
  return memcmp(bytes + MARK_SIZE, sum, sizeof sum) == 0 &&
         content == size - HEAD_SIZE &&
         memcmp(bytes + SIZE_AT + 8, key, KEY_SIZE) == 0;
}

unsigned char *tps_store_read(const tps_store *store, const char *key,
                              size_t *size) {
  if (store->folder == NULL) return NULL;
  char *path = entry_path(store, key);
  int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
  size_t all = 0;
  unsigned char *bytes = fd >= 0 ? read_file(fd, &all) : NULL;
  bool whole = bytes != NULL && is_whole(bytes, all, key);
  if (whole) {
    (void)futimens(fd, NULL);
    *size = all - HEAD_SIZE;
    memmove(bytes, bytes + HEAD_SIZE, *size);
  } else {
    free(bytes);
    bytes = NULL;
    if (fd >= 0) (void)unlink(path);
  }
  if (fd >= 0) close(fd);
  free(path);
  return bytes;
}

void tps_store_drop(const tps_store *store, const char *key) {
  char *path = store->folder != NULL ? entry_path(store, key) : NULL;
  if (path != NULL) (void)unlink(path);
  free(path);
}

/* ---- the folder's files -------------------------------------------------- */

typedef struct listed {
  char *name;
  uint64_t size;
  struct timespec used;
} listed;

typedef struct listing {
  listed *items;
  size_t count, room;
  uint64_t bytes;
} listing;

static bool ends_with(const char *text, const char *end) {
  size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

static void add_listed(listing *l, const char *name, const struct stat *info) {
  if (l->count == l->room) {
    size_t room = l->room ? 2 * l->room : 64;
    listed *items = realloc(l->items, room * sizeof *items);
    if (items == NULL) return;
    l->items = items;
    l->room = room;
  }
  listed *item = &l->items[l->count];
  item->name = strdup(name);
  if (item->name == NULL) return;
  item->size = (uint64_t)info->st_size;
  item->used = info->st_mtim;
  l->count++;
  l->bytes += (uint64_t)info->st_size;
}

/* Also takes away what a process that died left half written. */
static void list_folder(DIR *dir, listing *l) {
  struct dirent *entry;
  time_t now = time(NULL);
  /* cppcheck-suppress readdirCalled; nobody else reads this directory stream */
  while ((entry = readdir(dir)) != NULL) {
    struct stat info;
    bool half = strncmp(entry->d_name, ".half-", 6) == 0;
    if (!half && !ends_with(entry->d_name, SUFFIX)) continue;
    if (fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (!half) add_listed(l, entry->d_name, &info);
    else if (now - info.st_mtim.tv_sec > STALE_SECONDS)
      (void)unlinkat(dirfd(dir), entry->d_name, 0);
  }
}

static void free_listing(listing *l) {
  for (size_t i = 0; i < l->count; i++) free(l->items[i].name);
  free(l->items);
}

static int oldest_first(const void *a, const void *b) {
  const struct timespec *x = &((const listed *)a)->used;
  const struct timespec *y = &((const listed *)b)->used;
  if (x->tv_sec != y->tv_sec) return x->tv_sec < y->tv_sec ? -1 : 1;
  return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

/* Over the limit: down to nine tenths of it. */
static void evict(const tps_store *store) {
  DIR *dir = opendir(store->folder);
  listing l = {0};
  if (dir == NULL) return;
  list_folder(dir, &l);
  if (l.bytes > store->limit) {
    uint64_t aim = store->limit - store->limit / 10;
    qsort(l.items, l.count, sizeof *l.items, oldest_first);
    for (size_t i = 0; i < l.count && l.bytes > aim; i++) {
      (void)unlinkat(dirfd(dir), l.items[i].name, 0);
      l.bytes -= l.items[i].size;
    }
  }
  free_listing(&l);
  closedir(dir);
}

void tps_store_count(const tps_store *store, uint64_t *entries,
                     uint64_t *bytes) {
  DIR *dir = store->folder != NULL ? opendir(store->folder) : NULL;
  listing l = {0};
  if (dir != NULL) {
    list_folder(dir, &l);
    closedir(dir);
  }
  *entries = l.count;
  *bytes = l.bytes;
  free_listing(&l);
}

uint64_t tps_store_clear(const tps_store *store) {
  DIR *dir = store->folder != NULL ? opendir(store->folder) : NULL;
  uint64_t left = 0;
  listing l = {0};
  if (dir == NULL) return 0;
  list_folder(dir, &l);
  for (size_t i = 0; i < l.count; i++)
    if (unlinkat(dirfd(dir), l.items[i].name, 0) != 0 && errno != ENOENT)
      left++;
  free_listing(&l);
  closedir(dir);
  return left;
}

/* ---- writing ------------------------------------------------------------- */

static bool write_all(int fd, const void *bytes, size_t size) {
  const char *p = bytes;
  while (size > 0) {
    ssize_t n = write(fd, p, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    p += n;
    size -= (size_t)n;
  }
  return true;
}

/* The whole file in memory; *size is the content's, then the file's. */
static unsigned char *compose(const char *key, const void *bytes,
                              size_t *size) {
  uint64_t content = *size;
  unsigned char *file = malloc(HEAD_SIZE + *size);
  if (file == NULL) return NULL;
  memcpy(file, MARK, MARK_SIZE);
  memcpy(file + SIZE_AT, &content, sizeof content);
  memcpy(file + SIZE_AT + 8, key, KEY_SIZE);
  if (*size > 0) memcpy(file + HEAD_SIZE, bytes, *size);
  *size += HEAD_SIZE;
  tps_digest_of(file + SIZE_AT, *size - SIZE_AT, file + MARK_SIZE);
  return file;
}

/* A file beside the entries that nobody else writes. */
static int open_half(const tps_store *store, char **path) {
  static atomic_uint number;
  unsigned own = atomic_fetch_add_explicit(&number, 1, memory_order_relaxed);
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (asprintf(path, "%s/.half-%ld-%u-%ld", store->folder, (long)getpid(), own,
               now.tv_nsec) < 0) {
    *path = NULL;
    return -1;
  }
  return open(*path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

static bool put(const tps_store *store, const char *path,
                const unsigned char *file, size_t size) {
  char *half = NULL;
  int fd = open_half(store, &half);
  bool good = fd >= 0 && write_all(fd, file, size) && fsync(fd) == 0;
  if (fd >= 0) {
    good = close(fd) == 0 && good;
    good = good && rename(half, path) == 0;
    if (!good) (void)unlink(half);
  }
  free(half);
  return good;
}

bool tps_store_write(const tps_store *store, const char *key, const void *bytes,
                     size_t size) {
  if (store->folder == NULL || size > LARGEST - HEAD_SIZE ||
      size + HEAD_SIZE > store->limit || !make_folder(store->folder))
    return false;
  char *path = entry_path(store, key);
  unsigned char *file = path != NULL ? compose(key, bytes, &size) : NULL;
  bool good = file != NULL && put(store, path, file, size);
  free(file);
  free(path);
  if (good) evict(store);
  return good;
}
