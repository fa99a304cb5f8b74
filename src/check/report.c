/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What is said of two accesses without an order: the buffer, both operations, what
 * is missing, and the call that would supply it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "check/check.h"
#include "check/order.h"

/* ---- what makes it the same ---------------------------------------------- */

static uint64_t mix(uint64_t h, uint64_t value) {
  h = (h ^ value) * UINT64_C(0xff51afd7ed558ccd);
  return h ^ (h >> 32);
}

/* Names are interned: equal ones have one address. */
static uint64_t key_of(const tps_origin *origin) {
  uint64_t h = mix(mix(1, origin->kind), (uint64_t)origin->line);
  h = mix(h, (uint64_t)(uintptr_t)origin->source);
  return mix(h, (uint64_t)(uintptr_t)origin->kernel);
}

/* Whichever of the two came first this time. */
static uint64_t key_of_pair(const tps_origin *a, const tps_origin *b) {
  return mix(key_of(a) + key_of(b), key_of(a) ^ key_of(b));
}

/* ---- text ---------------------------------------------------------------- */

typedef struct text {
  char *bytes;
  size_t size, capacity;
  bool failed;
} text;

static void append(text *t, const char *bytes, size_t size) {
  if (t->size + size + 1 > t->capacity) {
    size_t wide = (t->size + size) * 2 + 256;
    char *room = realloc(t->bytes, wide);
    if (room == NULL) {
      t->failed = true;
      return;
    }
    t->bytes = room;
    t->capacity = wide;
  }
  memcpy(t->bytes + t->size, bytes, size);
  t->size += size;
  t->bytes[t->size] = '\0';
}

static void add(text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void add(text *t, const char *format, ...) {
  char piece[1024];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(piece, sizeof piece, format, args);
  va_end(args);
  size_t size = n < 0                      ? 0
                : (size_t)n < sizeof piece ? (size_t)n
                                           : sizeof piece - 1;
  append(t, piece, size);
}

static void place(char *out, size_t size, const char *source, int line) {
  if (line <= 0 || source[0] == '\0') out[0] = '\0';
  else snprintf(out, size, "%s:%d", source, line);
}

/* " at script.lua:12", or nothing. */
static void add_place(text *t, const char *before, const char *source,
                      int line) {
  if (line > 0 && source[0] != '\0') add(t, "%s%s:%d", before, source, line);
}

/* On two devices. */
static bool are_apart(const tps_origin *a, const tps_origin *b) {
  return b->kind != TPS_ORIGIN_HOST &&
         (a->device_kind != b->device_kind || a->device != b->device);
}

/* Two parts of one launch of a graph. */
static bool same_launch(const tps_origin *a, const tps_origin *b) {
  return a->launch != 0 && a->launch == b->launch;
}

/* ---- the two sides ------------------------------------------------------- */

static const char *kind_of(const tps_origin *origin) {
  switch (origin->kind) {
  case TPS_OP_LAUNCH: return "kernel";
  case TPS_OP_COPY: return "copy";
  case TPS_OP_FILL: return "fill";
  case TPS_OP_GRAPH: return "condition";
  default: return "host";
  }
}

/* What a kernel does with a pointer that was lost track of is not known. */
static bool is_unsure(uint8_t access) {
  return (access & TPS_ACCESS_UNKNOWN) == TPS_ACCESS_UNKNOWN;
}

static const char *access_name(uint8_t access) {
  if (is_unsure(access)) return "use";
  switch (access & TPS_ACCESS_BOTH) {
  case TPS_ACCESS_READ: return "read";
  case TPS_ACCESS_WRITE: return "write";
  default: return "read and write";
  }
}

/* What a launch of a graph does is on the stream of the launch, but within it on
 * those of the capture. */
static uint64_t stream_of(const tps_origin *origin, bool inside) {
  return inside || origin->launch == 0 ? origin->stream : origin->launch_stream;
}

/* Each device has a default stream. */
static void add_device(tps_report_side *side, const tps_origin *origin) {
  size_t size = strlen(side->on);
  if (origin->kind == TPS_ORIGIN_HOST) return;
  snprintf(side->on + size, sizeof side->on - size, " of %s:%d",
           origin->device_kind == TPS_CUDA ? "cuda" : "sim",
           (int)origin->device);
}

static void fill_side(tps_report_side *side, const tps_origin *origin,
                      uint64_t stream, uint8_t access) {
  side->access = access_name(access);
  side->kind = kind_of(origin);
  side->kernel = origin->kernel;
  side->source = origin->source;
  side->line = origin->line;
  side->stream = stream;
  if (origin->kind == TPS_ORIGIN_HOST)
    snprintf(side->on, sizeof side->on, "the host");
  else if (stream == 0)
    snprintf(side->on, sizeof side->on, "the default stream");
  else
    snprintf(side->on, sizeof side->on, "stream %llu",
             (unsigned long long)stream);
  if (origin->launch != 0)
    place(side->launched, sizeof side->launched, origin->launch_source,
          origin->launch_line);
}

/* "kernel 'scale' on stream 2", "copy from the host on the default stream" */
static void add_operation(text *t, const tps_report_side *side,
                          const tps_origin *origin) {
  if (origin->kind == TPS_ORIGIN_HOST) {
    add(t, "the host");
  } else {
    add(t, "%s", side->kind);
    if (side->kernel != NULL) add(t, " '%s'", side->kernel);
    if (origin->direction != 0)
      add(t, " %s the host", origin->direction > 0 ? "from" : "to");
    add(t, " on %s", side->on);
  }
  add_place(t, ", ", side->source, side->line);
  if (origin->launch != 0 && side->launched[0] != '\0')
    add(t, ", in the graph launched at %s", side->launched);
  else if (origin->launch != 0) add(t, ", in a graph");
}

static void add_side(text *t, const tps_report_side *side,
                     const tps_origin *origin) {
  add(t, "    %-6s ", side->access);
  add_operation(t, side, origin);
  add(t, "\n");
}

/* ---- the buffer ---------------------------------------------------------- */

static unsigned element_size(const char *element) {
  for (int i = 0; element != NULL && i < TPS_DTYPE_COUNT; i++)
    if (strcmp(tps_dtype_names[i], element) == 0) return tps_dtype_sizes[i];
  return 1;
}

static void fill_buffer(tps_report *r, const tps_place *place, uint64_t first,
                        uint64_t end) {
  unsigned size = element_size(place->element);
  r->dtype = place->element;
  r->elements = (int64_t)(place->bytes / size);
  uint64_t base = place->id == 0 ? first : place->address;
  r->from = (int64_t)((first - base) / size) + 1;
  r->to = (int64_t)((end - base - 1) / size) + 1;
  r->buffer_source = place->source;
  r->buffer_line = place->line;
}

static const char *memory_name(const tps_place *place) {
  switch (place->kind) {
  case TPS_MEMORY_ARRAY: return "a texture's array";
  case TPS_MEMORY_BORROWED: return "a module's variable";
  case TPS_MEMORY_FOREIGN: return "memory of others";
  default: return "memory";
  }
}

/* What a kernel has touched, of which nothing is known but the address. */
static void add_nameless(text *t, const tps_report *r) {
  int64_t bytes = r->to - r->from + 1;
  add(t,
      "%lld bytes of memory that no buffer stands for, such as a module's "
      "variable",
      (long long)bytes);
}

static void add_buffer(text *t, const tps_report *r, const tps_place *place) {
  const char *what = r->dtype != NULL ? "element" : "byte";
  if (place->id == 0) {
    add_nameless(t, r);
    return;
  }
  if (place->bytes == 0) add(t, "a buffer that was there before the checker");
  else if (r->dtype != NULL)
    add(t, "%s[%lld]", r->dtype, (long long)r->elements);
  else add(t, "%s of %lld bytes", memory_name(place), (long long)r->elements);
  add_place(t, " made at ", r->buffer_source, r->buffer_line);
  if (r->from == r->to) add(t, ", %s %lld", what, (long long)r->from);
  else add(t, ", %ss %lld to %lld", what, (long long)r->from, (long long)r->to);
}

/* ---- what is missing ----------------------------------------------------- */

/* How a script may call the stream. */
static void stream_name(char *out, size_t size, const tps_report_side *side,
                        const tps_origin *origin, bool apart) {
  if (side->stream != 0)
    snprintf(out, size, "s%llu", (unsigned long long)side->stream);
  else if (apart || origin->device > 0)
    snprintf(out, size, "tp.default_stream(%d)", (int)origin->device);
  else snprintf(out, size, "tp.default_stream()");
}

/* " before script.lua:12"; where a graph was launched, unless `inside` of it. */
static void add_where(text *t, const char *before, const tps_report_side *side,
                      bool inside, const char *otherwise) {
  if (!inside && side->launched[0] != '\0')
    add(t, " %s %s", before, side->launched);
  else if (side->line > 0 && side->source[0] != '\0')
    add(t, " %s %s:%d", before, side->source, side->line);
  else add(t, " %s %s", before, otherwise);
}

static void add_hint(text *t, const tps_report *r, const tps_origin *a,
                     const tps_origin *b) {
  char one[40], two[40];
  bool inside = same_launch(a, b), apart = are_apart(a, b);
  stream_name(one, sizeof one, &r->first, a, apart);
  stream_name(two, sizeof two, &r->second, b, apart);
  if (inside && a->stream == b->stream) {
    add(t, "a wait between the launches of the graph that both come from, in "
           "the capture");
    return;
  }
  if (b->kind == TPS_ORIGIN_HOST) {
    add(t, "%s:synchronize()", one);
    add_where(t, "before", &r->second, inside, "it");
    return;
  }
  add(t, "%s:wait_stream(%s)%s", two, one, inside ? " in the capture" : "");
  add_where(t, "before", &r->second, inside, "the second");
  add(t, ", or e = %s:record_event()", one);
  add_where(t, "after", &r->first, inside, "the first");
  add(t, " and %s:wait_event(e)", two);
  add_where(t, "before", &r->second, inside, "the second");
}

static void add_missing(text *t, const tps_report *r, const tps_origin *a,
                        const tps_origin *b) {
  if (b->kind == TPS_ORIGIN_HOST)
    add(t, "the host does not wait for %s", r->first.on);
  else if (same_launch(a, b) && a->stream == b->stream)
    add(t, "no edge of the graph leads from the one to the other");
  else
    add(t, "nothing makes %s wait for that work of %s", r->second.on,
        r->first.on);
}

static char *hint_of(const tps_report *r, const tps_origin *a,
                     const tps_origin *b) {
  text t = {0};
  add_hint(&t, r, a, b);
  if (!t.failed) return t.bytes;
  free(t.bytes);
  return NULL;
}

static void add_title(text *t, const tps_report *r, const tps_place *place,
                      uint8_t first, uint8_t second) {
  bool first_wrote = (first & TPS_ACCESS_WRITE) != 0;
  bool second_wrote = (second & TPS_ACCESS_WRITE) != 0;
  const char *what = first_wrote && second_wrote ? "two writes"
                     : first_wrote               ? "a write and a read"
                                                 : "a read and a write";
  if (is_unsure(first) || is_unsure(second))
    add(t, "Perhaps missing order between two uses of ");
  else add(t, "Missing order between %s of ", what);
  add_buffer(t, r, place);
  add(t, "\n");
}

/* The memory with that address; that of a larger one, rather than a view of it. */
static const tps_place *place_at(const tps_order *o, uint64_t address) {
  static const tps_place none = {.source = ""};
  const tps_place *best = &none;
  for (size_t i = 0; i < o->places.capacity; i++) {
    const tps_place *p = o->places.slots[i].value;
    if (p != NULL && p->space == TPS_SPACE_SIM &&
        address - p->address < p->bytes && p->bytes > best->bytes)
      best = p;
  }
  return best;
}

bool tps_order_report(const tps_order *o, const tps_visit *earlier,
                      const tps_access_try *later, uint64_t first,
                      uint64_t end) {
  const tps_origin *a = earlier->origin, *b = later->visit->origin;
  text t = {0};
  uint64_t key = key_of_pair(a, b);
  if (tps_report_again(TPS_CHECK_ORDER, key)) return true;
  const tps_place *place = later->place;
  if (place == NULL) place = place_at(o, first);
  tps_report *r = tps_report_new(TPS_CHECK_ORDER, key);
  if (r == NULL) return false;
  bool inside = same_launch(a, b);
  fill_side(&r->first, a, stream_of(a, inside), earlier->access);
  fill_side(&r->second, b, stream_of(b, inside), later->access);
  bool apart = are_apart(a, b);
  if (apart || (r->first.stream == 0 && a->device > 0))
    add_device(&r->first, a);
  if (apart || (r->second.stream == 0 && b->device > 0))
    add_device(&r->second, b);
  fill_buffer(r, place, first, end);
  r->hint = hint_of(r, a, b);
  add_title(&t, r, place, earlier->access, later->access);
  add_side(&t, &r->first, a);
  add_side(&t, &r->second, b);
  add(&t, "    missing: ");
  add_missing(&t, r, a, b);
  add(&t, "\n    add ");
  if (r->hint != NULL) append(&t, r->hint, strlen(r->hint));
  add(&t, "\n");
  r->text = t.bytes;
  if (t.failed || r->hint == NULL) {
    tps_report_unref(r);
    return false;
  }
  return tps_report_add(r);
}
