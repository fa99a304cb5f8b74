/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * A literal and a source that was made of it agree in most lines, and where something
 * was replaced at both ends of a line. So they are laid side by side at every offset:
 * a run is what agrees at one of them, but for a line or two in between. A literal
 * of which less than that agrees has nothing to do with the source. */
#include "rtc/template.h"

#include <stdlib.h>
#include <string.h>

#define MOST_RUNS 512u
#define MOST_PAIRS ((size_t)1 << 18) /* of lines that are compared, in all */
#define TELLING 8                    /* bytes in which a line has to agree */
#define ALONE 16                     /* a line that does so by itself */
#define WIDEST_GAP 2                 /* lines within a run */

typedef struct line {
  const char *text; /* without blanks at its ends */
  int length;
} line;

typedef struct run {
  int line, count, script_line; /* as in a tps_rtc_part */
  int score;                    /* bytes that agree */
} run;

struct tps_rtc_template {
  line *lines;
  int line_count;
  size_t pairs_left;
  size_t run_count;
  run runs[MOST_RUNS];
};

typedef struct literal {
  line *lines;
  int *best; /* bytes of each that agree at one offset at least */
  int count, script_line;
} literal;

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static line trim(const char *from, const char *to) {
  while (from < to && is_blank(*from)) from++;
  while (to > from && is_blank(to[-1])) to--;
  return (line){from, (int)(to - from)};
}

/* Owned; NULL: no memory. */
static line *split(const char *text, size_t size, int *count) {
  const char *end = text + size;
  size_t n = 1;
  for (const char *p = text; p < end; p++) n += *p == '\n';
  line *out = malloc(n * sizeof *out);
  *count = 0;
  for (size_t i = 0; out != NULL && i < n; i++) {
    const char *stop = memchr(text, '\n', (size_t)(end - text));
    if (stop == NULL) stop = end;
    out[(*count)++] = trim(text, stop);
    if (stop < end) text = stop + 1;
    else text = end;
  }
  return out;
}

static bool is_same(const line *a, const line *b) {
  return a->length == b->length &&
         memcmp(a->text, b->text, (size_t)a->length) == 0;
}

/* Bytes in which both agree at their beginning and their end; 0 where that is less
 * than half of the shorter one, or may be chance. */
static int agreement(const line *a, const line *b) {
  int least = a->length < b->length ? a->length : b->length;
  int n = 0, m = 0;
  if (least < TELLING) return 0;
  while (n < least && a->text[n] == b->text[n]) n++;
  while (m < least - n &&
         a->text[a->length - 1 - m] == b->text[b->length - 1 - m])
    m++;
  return n + m >= TELLING && 2 * (n + m) >= least ? n + m : 0;
}

typedef struct stretch {
  int first, last; /* lines of the literal */
  int score, telling;
} stretch;

/* What agrees with the source `offset` lines on. One line alone has to be the same. */
static void keep(tps_rtc_template *t, const literal *l, int offset,
                 const stretch *s) {
  if (t->run_count == MOST_RUNS) return;
  if (s->telling < 2 &&
      (s->score < ALONE ||
       !is_same(&l->lines[s->first], &t->lines[s->first + offset])))
    return;
  t->runs[t->run_count++] = (run){s->first + offset + 1, s->last - s->first + 1,
                                  l->script_line + s->first, s->score};
}

static void compare_at(tps_rtc_template *t, literal *l, int offset) {
  stretch s = {.telling = 0};
  for (int i = offset < 0 ? -offset : 0;
       i < l->count && i + offset < t->line_count; i++) {
    const line *mine = &l->lines[i], *other = &t->lines[i + offset];
    int n = agreement(mine, other);
    if (s.telling > 0 && i - s.last > WIDEST_GAP + 1) {
      keep(t, l, offset, &s);
      s.telling = 0;
    }
    if (n == 0 && (s.telling == 0 || !is_same(mine, other))) continue;
    if (s.telling == 0) s = (stretch){.first = i};
    if (n > l->best[i]) l->best[i] = n;
    s.last = i;
    s.score += n;
    s.telling += n > 0;
  }
  if (s.telling > 0) keep(t, l, offset, &s);
}

/* Whether most of the literal is in the source. */
static bool is_related(const literal *l) {
  long all = 0, found = 0;
  for (int i = 0; i < l->count; i++) {
    all += l->lines[i].length;
    found += l->best[i];
  }
  return 3 * found >= 2 * all;
}

void tps_rtc_template_compare(tps_rtc_template *t, const char *value,
                              size_t length, int script_line) {
  literal l = {.script_line = script_line};
  size_t before = t->run_count, pairs;
  l.lines = split(value, length, &l.count);
  l.best = l.lines != NULL ? calloc((size_t)l.count, sizeof *l.best) : NULL;
  pairs = (size_t)l.count * (size_t)t->line_count;
  if (l.best != NULL && l.count > 1 && pairs <= t->pairs_left) {
    t->pairs_left -= pairs;
    for (int offset = 1 - l.count; offset < t->line_count; offset++)
      compare_at(t, &l, offset);
    if (!is_related(&l)) t->run_count = before;
  }
  free(l.best);
  free(l.lines);
}

/* ---- the result ---------------------------------------------------------- */

static bool overlap(const run *r, int from, int count) {
  return r->line < from + count && from < r->line + r->count;
}

static bool is_within(const run *r, const tps_rtc_part *p) {
  return r->line >= p->line && r->line - p->line + r->count <= p->count;
}

/* Whether the run adds nothing to the first `whole` parts, which go before it, or
 * concerns a line of the others, which are better ones. */
static bool is_taken(const run *r, const tps_rtc_part *parts, size_t whole,
                     size_t count) {
  for (size_t i = 0; i < whole; i++)
    if (is_within(r, &parts[i])) return true;
  for (size_t i = whole; i < count; i++)
    if (overlap(r, parts[i].line, parts[i].count)) return true;
  return false;
}

/* The best of those not taken; *doubtful: another is as good. */
static const run *best_run(const tps_rtc_template *t, const tps_rtc_part *parts,
                           size_t whole, size_t count, bool *doubtful) {
  const run *best = NULL;
  *doubtful = false;
  for (size_t i = 0; i < t->run_count; i++) {
    const run *r = &t->runs[i];
    if ((best != NULL && r->score < best->score) ||
        is_taken(r, parts, whole, count))
      continue;
    if (best == NULL || r->score > best->score) {
      best = r;
      *doubtful = false;
    } else if (overlap(r, best->line, best->count)) {
      *doubtful = true;
    }
  }
  return best;
}

size_t tps_rtc_template_parts(const tps_rtc_template *t, tps_rtc_part *parts,
                              size_t count, size_t most) {
  size_t whole = count;
  bool doubtful;
  while (count < most) {
    const run *r = best_run(t, parts, whole, count, &doubtful);
    if (r == NULL || doubtful) break;
    parts[count++] = (tps_rtc_part){r->line, r->count, r->script_line, false};
  }
  return count;
}

tps_rtc_template *tps_rtc_template_new(const char *source, size_t size) {
  tps_rtc_template *t = calloc(1, sizeof *t);
  if (t == NULL) return NULL;
  t->pairs_left = MOST_PAIRS;
  t->lines = split(source, size, &t->line_count);
  if (t->lines != NULL) return t;
  free(t);
  return NULL;
}

void tps_rtc_template_free(tps_rtc_template *t) {
  if (t == NULL) return;
  free(t->lines);
  free(t);
}
