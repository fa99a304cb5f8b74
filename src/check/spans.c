/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * A treap: a search tree by address that random priorities keep flat. Each change
 * cuts the range out of it, and puts what comes in its place between the two
 * other parts. */
#include "check/spans.h"

#include <stdlib.h>
#include <string.h>

void tps_origin_unref(tps_origin *origin) {
  if (origin != NULL && --origin->refs == 0) free(origin);
}

/* ---- pieces -------------------------------------------------------------- */

static void set_visit(tps_visit *to, const tps_visit *visit) {
  tps_origin *before = to->origin;
  *to = *visit;
  if (to->origin != NULL) to->origin->refs++;
  tps_origin_unref(before);
}

static tps_span *new_span(tps_spans *spans, uint64_t first, uint64_t end) {
  tps_span *span = calloc(1, sizeof *span);
  if (span == NULL) return NULL;
  spans->random = spans->random * 1664525u + 1013904223u;
  span->priority = spans->random >> 1;
  span->first = first;
  span->end = end;
  spans->count++;
  return span;
}

static void free_span(tps_spans *spans, tps_span *span) {
  tps_origin_unref(span->write.origin);
  for (uint32_t i = 0; i < span->count; i++)
    tps_origin_unref(span->others[i].origin);
  free(span->others);
  free(span);
  spans->count--;
}

static void free_tree(tps_spans *spans, tps_span *span) {
  if (span == NULL) return;
  free_tree(spans, span->left);
  free_tree(spans, span->right);
  free_span(spans, span);
}

void tps_spans_free(tps_spans *spans) {
  free_tree(spans, spans->root);
  spans->root = NULL;
}

static bool copy_visits(tps_span *to, const tps_span *from) {
  set_visit(&to->write, &from->write);
  if (from->count == 0) return true;
  to->others = calloc(from->count, sizeof *to->others);
  if (to->others == NULL) return false;
  to->count = to->capacity = from->count;
  for (uint32_t i = 0; i < to->count; i++)
    set_visit(&to->others[i], &from->others[i]);
  return true;
}

/* ---- the tree ------------------------------------------------------------ */

/* What begins before `at`, and the rest. */
static void split(tps_span *span, uint64_t at, tps_span **before,
                  tps_span **rest) {
  if (span == NULL) {
    *before = *rest = NULL;
  } else if (span->first < at) {
    split(span->right, at, &span->right, rest);
    *before = span;
  } else {
    split(span->left, at, before, &span->left);
    *rest = span;
  }
}

/* All of `a` lies before `b`. */
static tps_span *merge(tps_span *a, tps_span *b) {
  if (a == NULL || b == NULL) return a != NULL ? a : b;
  if (a->priority > b->priority) {
    a->right = merge(a->right, b);
    return a;
  }
  b->left = merge(a, b->left);
  return b;
}

/* The piece with bytes on both sides of `at`, or NULL. */
static tps_span *across(const tps_spans *spans, uint64_t at) {
  tps_span *span = spans->root;
  while (span != NULL && !(span->first < at && span->end > at))
    span = span->first >= at ? span->left : span->right;
  return span;
}

static bool cut(tps_spans *spans, uint64_t at) {
  tps_span *span = across(spans, at), *before, *rest;
  if (span == NULL) return true;
  tps_span *second = new_span(spans, at, span->end);
  if (second == NULL) return false;
  if (!copy_visits(second, span)) {
    free_span(spans, second);
    return false;
  }
  span->end = at;
  split(spans->root, at, &before, &rest);
  spans->root = merge(merge(before, second), rest);
  return true;
}

/* Takes the pieces of [first, end) out. */
typedef struct parts {
  tps_span *before, *inside, *behind;
} parts;

static bool take_out(tps_spans *spans, uint64_t first, uint64_t end,
                     parts *out) {
  tps_span *rest;
  if (!cut(spans, first) || !cut(spans, end)) return false;
  split(spans->root, first, &out->before, &rest);
  split(rest, end, &out->inside, &out->behind);
  return true;
}

static void put_back(tps_spans *spans, const parts *p) {
  spans->root = merge(merge(p->before, p->inside), p->behind);
}

/* ---- looking ------------------------------------------------------------- */

static void look(const tps_span *span, uint64_t first, uint64_t end,
                 tps_span_test *test, void *data) {
  if (span == NULL) return;
  if (span->first > first) look(span->left, first, end, test, data);
  if (span->first < end && span->end > first)
    test(data, span, span->first > first ? span->first : first,
         span->end < end ? span->end : end);
  if (span->first < end) look(span->right, first, end, test, data);
}

void tps_spans_look(const tps_spans *spans, uint64_t first, uint64_t end,
                    tps_span_test *test, void *data) {
  look(spans->root, first, end, test, data);
}

/* ---- changing ------------------------------------------------------------ */

bool tps_spans_clear(tps_spans *spans, uint64_t first, uint64_t end) {
  parts p;
  if (!take_out(spans, first, end, &p)) return false;
  free_tree(spans, p.inside);
  p.inside = NULL;
  put_back(spans, &p);
  return true;
}

bool tps_spans_write(tps_spans *spans, uint64_t first, uint64_t end,
                     const tps_visit *write) {
  parts p;
  tps_span *whole = new_span(spans, first, end);
  if (whole == NULL) return false;
  if (!take_out(spans, first, end, &p)) {
    free_span(spans, whole);
    return false;
  }
  set_visit(&whole->write, write);
  free_tree(spans, p.inside);
  p.inside = whole;
  put_back(spans, &p);
  return true;
}

typedef struct reading {
  tps_spans *spans;
  const tps_visit *read;
  bool (*covered)(void *data, const tps_visit *);
  void *data;
  uint64_t at; /* up to here the tree was walked */
  bool failed;
} reading;

static bool grow(tps_span *span) {
  uint32_t capacity = span->capacity * 2 + 2;
  tps_visit *reads = realloc(span->others, capacity * sizeof *reads);
  if (reads == NULL) return false;
  span->others = reads;
  span->capacity = capacity;
  return true;
}

/* Lets go of those that nobody needs to know of. */
static void thin(tps_span *span, bool (*covered)(void *, const tps_visit *),
                 void *data) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < span->count; i++) {
    if (covered(data, &span->others[i]))
      tps_origin_unref(span->others[i].origin);
    else span->others[kept++] = span->others[i];
  }
  span->count = kept;
}

/* The later one of a lane stands for the earlier of its kind. A full list is
 * thinned, and grows if that leaves it rather full, so each look through it pays. */
static void add_read(reading *r, tps_span *span) {
  for (uint32_t i = 0; i < span->count; i++) {
    tps_visit *visit = &span->others[i];
    if (visit->lane != r->read->lane || visit->access != r->read->access)
      continue;
    set_visit(visit, r->read);
    return;
  }
  if (span->count == span->capacity) {
    thin(span, r->covered, r->data);
    if (span->count * 2 >= span->capacity && !grow(span)) {
      r->failed = true;
      return;
    }
  }
  span->others[span->count] = (tps_visit){0};
  set_visit(&span->others[span->count++], r->read);
}

/* A piece for the bytes from r->at up to `end`, of which nothing is known. */
static tps_span *fill_gap(reading *r, uint64_t end) {
  if (r->at >= end) return NULL;
  tps_span *gap = new_span(r->spans, r->at, end);
  if (gap != NULL) add_read(r, gap);
  else r->failed = true;
  return gap;
}

/* The tree with the read added everywhere, and pieces in its gaps. */
static tps_span *read_tree(reading *r, tps_span *span) {
  if (span == NULL) return NULL;
  tps_span *left = read_tree(r, span->left), *right = span->right;
  tps_span *gap = fill_gap(r, span->first);
  add_read(r, span);
  r->at = span->end;
  span->left = span->right = NULL;
  right = read_tree(r, right);
  return merge(merge(merge(left, gap), span), right);
}

bool tps_spans_add(tps_spans *spans, uint64_t first, uint64_t end,
                   const tps_visit *read,
                   bool (*covered)(void *data, const tps_visit *), void *data) {
  reading r = {spans, read, covered, data, first, false};
  parts p;
  if (!take_out(spans, first, end, &p)) return false;
  p.inside = read_tree(&r, p.inside);
  p.inside = merge(p.inside, fill_gap(&r, end));
  put_back(spans, &p);
  return !r.failed;
}

/* ---- letting go ---------------------------------------------------------- */

typedef struct sweeping {
  tps_spans *spans;
  bool (*covered)(void *data, const tps_visit *);
  void *data;
} sweeping;

static bool is_needed(const sweeping *s, tps_span *span) {
  thin(span, s->covered, s->data);
  if (span->write.origin != NULL && s->covered(s->data, &span->write)) {
    tps_origin_unref(span->write.origin);
    span->write.origin = NULL;
  }
  return span->count > 0 || span->write.origin != NULL;
}

static tps_span *sweep(const sweeping *s, tps_span *span) {
  if (span == NULL) return NULL;
  span->left = sweep(s, span->left);
  span->right = sweep(s, span->right);
  if (is_needed(s, span)) return span;
  tps_span *rest = merge(span->left, span->right);
  free_span(s->spans, span);
  return rest;
}

void tps_spans_sweep(tps_spans *spans,
                     bool (*covered)(void *data, const tps_visit *),
                     void *data) {
  sweeping s = {spans, covered, data};
  spans->root = sweep(&s, spans->root);
}
