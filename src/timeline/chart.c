/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * A timeline as text: a line for each stream, a letter for each kernel, the sums
 * below. A column shows what took most of its time; work is shown in preference
 * to waiting, however short it was: a kernel by a small letter where there was work
 * for less than half of the column. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "timeline/chart.h"

#define LABEL 14 /* columns before the bars */
#define NARROWEST 10
#define WIDEST 1000
#define RANGE_LINES 12u

const struct tps_sign tps_signs[TPS_USES] = {
    [TPS_USE_IN] = {'>', "copy to the device"},
    [TPS_USE_OUT] = {'<', "copy to the host"},
    [TPS_USE_WITHIN] = {'=', "copy within a device"},
    [TPS_USE_ACROSS] = {'x', "copy between devices"},
    [TPS_USE_HOST] = {'_', "copy within the host"},
    [TPS_USE_FILL] = {'~', "fill"},
    [TPS_USE_GRAPH] = {'@', "graph"},
    [TPS_USE_CALLBACK] = {'!', "callback"},
    [TPS_USE_WAIT] = {'.', "wait for an event"}};

/* ---- symbols ------------------------------------------------------------- */

static tps_sum *use_of_kernel(tps_chart *c, const char *kernel) {
  if (c->last < c->kernel_count && c->kernels[c->last].kernel == kernel)
    return &c->kernels[c->last];
  size_t i = 0;
  while (i < c->kernel_count && c->kernels[i].kernel != kernel) i++;
  if (i == c->kernel_count) {
    if ((i & (i - 1)) == 0) { /* a power of two: full */
      tps_sum *more = realloc(c->kernels, (2 * i + 1) * sizeof *more);
      if (more == NULL) return NULL;
      c->kernels = more;
    }
    c->kernels[c->kernel_count++] = (tps_sum){.kernel = kernel, .symbol = '#'};
  }
  c->last = i;
  return &c->kernels[i];
}

/* NULL: it is not drawn. */
static tps_sum *use_of(tps_chart *c, const tps_timeline_item *item) {
  static const uint8_t routes[] = {[TPS_ROUTE_WITHIN] = TPS_USE_WITHIN,
                                   [TPS_ROUTE_IN] = TPS_USE_IN,
                                   [TPS_ROUTE_OUT] = TPS_USE_OUT,
                                   [TPS_ROUTE_ACROSS] = TPS_USE_ACROSS,
                                   [TPS_ROUTE_HOST] = TPS_USE_HOST};
  switch ((tps_op_kind)item->kind) {
  case TPS_OP_LAUNCH:
    return use_of_kernel(c, item->kernel != NULL ? item->kernel : "?");
  case TPS_OP_COPY: return &c->uses[routes[item->route]];
  case TPS_OP_FILL: return &c->uses[TPS_USE_FILL];
  case TPS_OP_HOST: return &c->uses[TPS_USE_CALLBACK];
  case TPS_OP_WAIT: return &c->uses[TPS_USE_WAIT];
  case TPS_OP_GRAPH:
    if (item->graph != 0 || c->split[item - c->timeline->items]) return NULL;
    return &c->uses[TPS_USE_GRAPH];
  default: return NULL;
  }
}

static int by_time(const void *x, const void *y) {
  const tps_sum *a = x, *b = y;
  if (a->ns != b->ns) return a->ns < b->ns ? 1 : -1;
  return strcmp(a->kernel, b->kernel);
}

/* What is used how often; then each kernel, the longest first, has its letter. */
static bool count_uses(tps_chart *c) {
  const tps_timeline *t = c->timeline;
  for (size_t i = 0; i < t->count; i++)
    if (t->items[i].graph != 0) c->split[t->items[i].graph - 1] = true;
  for (int i = 0; i < TPS_USES; i++) c->uses[i].symbol = tps_signs[i].symbol;
  for (size_t i = 0; i < t->count; i++) {
    const tps_timeline_item *item = &t->items[i];
    if (item->finished_ns == 0) continue;
    tps_sum *u = use_of(c, item);
    if (u == NULL && item->kind == TPS_OP_LAUNCH) return false;
    if (u == NULL) continue;
    u->count++;
    u->ns += item->finished_ns - item->started_ns;
    u->bytes += item->bytes;
  }
  if (c->kernel_count > 0)
    qsort(c->kernels, c->kernel_count, sizeof *c->kernels, by_time);
  for (size_t i = 0; i < c->kernel_count && i < TPS_LETTERS; i++)
    c->kernels[i].symbol = (char)('A' + (int)i);
  return true;
}

/* ---- bars ---------------------------------------------------------------- */

double tps_chart_span(const tps_chart *c) {
  uint64_t ns = c->view.last_ns - c->view.first_ns;
  return ns > 0 ? (double)ns : 1;
}

static int column_of(const tps_chart *c, uint64_t ns) {
  if (ns <= c->view.first_ns) return 0;
  double at = (double)(ns - c->view.first_ns) / tps_chart_span(c) * c->width;
  return at >= c->width ? c->width - 1 : (int)at;
}

static uint64_t time_of(const tps_chart *c, int column) {
  return c->view.first_ns + (uint64_t)(tps_chart_span(c) * column / c->width);
}

static void paint(tps_chart *c, char symbol, uint64_t from, uint64_t to) {
  int first = column_of(c, from), last = column_of(c, to);
  if (last > first && time_of(c, last) >= to) last--;
  for (int i = first; i <= last; i++) {
    uint64_t begin = time_of(c, i), end = time_of(c, i + 1);
    if (begin < from) begin = from;
    if (end > to) end = to;
    c->weights[i * 128 + symbol] += end > begin ? end - begin : 1;
  }
}

static bool is_idle(char symbol) { return symbol == '.' || symbol == ':'; }

static char strongest(const tps_chart *c, const uint64_t *weights) {
  char best = ' ';
  uint64_t most = 0, busy = 0;
  if (weights['?'] > 0)
    return '?'; /* however little there is left to show it */
  for (char s = '!'; s < 127; s++) {
    bool better = weights[(int)s] > most;
    if (weights[(int)s] == 0) continue;
    if (!is_idle(s)) busy += weights[(int)s];
    if (best != ' ' && is_idle(s) != is_idle(best)) better = is_idle(best);
    if (!better) continue;
    best = s;
    most = weights[(int)s];
  }
  bool letter = best >= 'A' && best <= 'Z';
  bool little = (double)busy < tps_chart_span(c) / c->width / 2;
  if (letter && little) best = (char)tolower((unsigned char)best);
  return best;
}

static void label(const tps_chart *c, const char *text) {
  int used = tps_write_plain(c->out, text, LABEL - 1);
  fprintf(c->out, "%*s", LABEL - used, "");
}

static void bar(tps_chart *c, const char *text) {
  label(c, text);
  fputc('|', c->out);
  for (int i = 0; i < c->width; i++)
    fputc(strongest(c, &c->weights[i * 128]), c->out);
  fputc('|', c->out);
  memset(c->weights, 0, (size_t)c->width * 128 * sizeof *c->weights);
}

/* ---- lines --------------------------------------------------------------- */

/* 1, 2 or 5 times a power of ten: at least so many ns. */
static double round_up(double ns) {
  double step = 1;
  while (step < ns) {
    if (2 * step >= ns) return 2 * step;
    if (5 * step >= ns) return 5 * step;
    step *= 10;
  }
  return step;
}

/* Times, some columns apart, in the unit that suits the whole. */
static void axis(const tps_chart *c) {
  double span = tps_chart_span(c);
  double unit = span >= 1e9 ? 1e9 : span >= 1e6 ? 1e6 : span >= 1e3 ? 1e3 : 1;
  double step = round_up(tps_chart_span(c) / c->width * 14);
  int at = 0;
  label(c, unit > 1e6 ? "s" : unit > 1e3 ? "ms" : unit > 1 ? "us" : "ns");
  fputc(' ', c->out);
  for (int n = 0; n * step <= tps_chart_span(c); n++) {
    char number[32];
    int column = column_of(c, c->view.first_ns + (uint64_t)(n * step));
    snprintf(number, sizeof number, "%g", n * step / unit);
    if (column + (int)strlen(number) > c->width) break;
    fprintf(c->out, "%*s%s", column - at, "", number);
    at = column + (int)strlen(number);
  }
  fputc('\n', c->out);
}

static void host_lines(tps_chart *c) {
  const tps_timeline *t = c->timeline;
  char text[32];
  for (uint32_t h = 0; h < c->view.context_count; h++) {
    uint64_t context = c->view.contexts[h];
    for (size_t i = 0; i < t->count; i++)
      if (t->items[i].context == context && t->items[i].graph == 0 &&
          t->items[i].queued_ns != 0)
        paint(c, ':', t->items[i].queued_ns, t->items[i].queued_ns);
    for (size_t i = 0; i < t->span_count; i++)
      if (t->spans[i].context == context && t->spans[i].name == NULL)
        paint(c, 'w', t->spans[i].began_ns, t->spans[i].ended_ns);
    snprintf(text, sizeof text, h == 0 ? "host" : "host %" PRIu32, h + 1);
    bar(c, text);
    fputc('\n', c->out);
  }
}

/* The names of the ranges of one lane and depth, each between brackets. */
static void range_line(const tps_chart *c, uint32_t lane, uint32_t depth) {
  const tps_timeline *t = c->timeline;
  int at = 0;
  label(c, lane == 0 && depth == 0 ? "ranges" : "");
  fputc('|', c->out);
  for (size_t i = 0; i < t->span_count; i++) {
    const tps_timeline_span *s = &t->spans[i];
    if (s->name == NULL || s->lane != lane || s->depth != depth) continue;
    int first = column_of(c, s->began_ns), last = column_of(c, s->ended_ns);
    if (last < at) continue; /* no room */
    if (first < at) first = at;
    fprintf(c->out, "%*s", first - at, "");
    if (last == first) {
      fputc('|', c->out);
    } else {
      fputc('[', c->out);
      int used = tps_write_plain(c->out, s->name, last - first - 1);
      for (int k = first + 1 + used; k < last; k++) fputc('-', c->out);
      fputc(']', c->out);
    }
    at = last + 1;
  }
  fprintf(c->out, "%*s|\n", c->width - at, "");
}

static void range_lines(const tps_chart *c) {
  const tps_timeline *t = c->timeline;
  uint32_t depths[RANGE_LINES] = {0}, lines = 0;
  for (size_t i = 0; i < t->span_count; i++)
    if (t->spans[i].name != NULL && t->spans[i].lane < RANGE_LINES &&
        depths[t->spans[i].lane] <= t->spans[i].depth)
      depths[t->spans[i].lane] = t->spans[i].depth + 1;
  for (uint32_t lane = 0; lane < RANGE_LINES; lane++)
    for (uint32_t d = 0; d < depths[lane] && lines < RANGE_LINES; d++, lines++)
      range_line(c, lane, d);
}

static void stream_bar(tps_chart *c, const tps_row *row) {
  const tps_timeline_item *items = c->timeline->items;
  uint64_t end = 0;
  char text[32];
  for (uint32_t k = 0; k < row->count; k++) {
    const tps_timeline_item *item = &items[row->items[k]];
    const tps_sum *u = use_of(c, item);
    if (u != NULL) paint(c, u->symbol, item->started_ns, item->finished_ns);
    if (item->finished_ns > end) end = item->finished_ns;
  }
  if (row->lost_count > 0) {
    uint64_t queued = items[row->lost[0]].queued_ns;
    paint(c, '?', queued > end ? queued : end, c->view.last_ns);
  }
  snprintf(text, sizeof text, "stream %" PRIu64, row->stream);
  bar(c, text);
  fprintf(c->out, " %3.0f%%\n", 100 * (double)row->busy_ns / tps_chart_span(c));
}

static void stream_lines(tps_chart *c) {
  char device[32];
  const tps_row *before = NULL;
  uint32_t count = c->view.row_count;
  for (uint32_t i = 0; i < count && i < TPS_STREAM_LINES; i++) {
    const tps_row *row = &c->view.rows[i];
    if (c->view.device_count > 1 &&
        (before == NULL || before->device != row->device ||
         before->device_kind != row->device_kind))
      fprintf(c->out, "%s\n",
              tps_write_device(row->device_kind, row->device, device));
    before = row;
    stream_bar(c, row);
  }
  if (count > TPS_STREAM_LINES)
    fprintf(c->out, "%" PRIu32 " more streams: a page shows them\n",
            count - TPS_STREAM_LINES);
}

/* Of what is on a device; a graph counts as one. */
static size_t count_operations(const tps_timeline *t) {
  size_t count = 0;
  for (size_t i = 0; i < t->count; i++)
    count += t->items[i].graph == 0 && t->items[i].kind != TPS_OP_ALLOC &&
             t->items[i].kind != TPS_OP_FREE;
  return count;
}

/* Waits alone are nothing to draw: the recording's own end is one. */
static bool is_empty(const tps_timeline *t) {
  if (t->count > 0) return false;
  for (size_t i = 0; i < t->span_count; i++)
    if (t->spans[i].name != NULL) return false;
  return true;
}

static void draw(tps_chart *c) {
  char total[32];
  size_t count = count_operations(c->timeline);
  fprintf(c->out, "timeline: %zu operation%s on %" PRIu32 " stream%s, %s\n",
          count, count == 1 ? "" : "s", c->view.row_count,
          c->view.row_count == 1 ? "" : "s",
          tps_write_lasts((double)(c->view.last_ns - c->view.first_ns), total));
  if (!c->empty) {
    axis(c);
    host_lines(c);
    range_lines(c);
    stream_lines(c);
  }
  tps_chart_sums(c);
}

bool tps_timeline_chart(const tps_timeline *timeline, FILE *out, int columns) {
  int width = columns - LABEL - 7;
  tps_chart c = {.timeline = timeline, .out = out, .columns = columns};
  c.width = width < NARROWEST ? NARROWEST : width > WIDEST ? WIDEST : width;
  if (!tps_view_make(timeline, &c.view)) return false;
  c.empty = is_empty(timeline);
  c.weights = calloc((size_t)c.width * 128, sizeof *c.weights);
  c.split = calloc(timeline->count + 1, sizeof *c.split);
  bool room = c.weights != NULL && c.split != NULL && count_uses(&c);
  if (room) draw(&c);
  free(c.weights);
  free(c.split);
  free(c.kernels);
  tps_view_free(&c.view);
  return room;
}
