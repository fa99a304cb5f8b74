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

#include "timeline/parts.h"

#define LABEL 14 /* columns before the bars */
#define NARROWEST 20
#define WIDEST 1000
#define RANGE_LINES 12u

/* What a symbol stands for, in all streams together. */
typedef struct use {
  const char *kernel; /* of kernels */
  char symbol;
  uint64_t count, ns, bytes;
} use;

enum { IN, OUT, WITHIN, ACROSS, HOST, FILL, GRAPH, CALLBACK, WAIT, USES };

static const struct {
  char symbol;
  const char *text;
} legend[USES] = {[IN] = {'>', "copy to the device"},
                  [OUT] = {'<', "copy to the host"},
                  [WITHIN] = {'=', "copy within a device"},
                  [ACROSS] = {'x', "copy between devices"},
                  [HOST] = {'_', "copy within the host"},
                  [FILL] = {'~', "fill"},
                  [GRAPH] = {'@', "graph"},
                  [CALLBACK] = {'!', "callback"},
                  [WAIT] = {'.', "wait for an event"}};

typedef struct chart {
  const tps_timeline *timeline;
  tps_view view;
  FILE *out;
  int width;         /* columns of the bars */
  uint64_t *weights; /* width × 128: ns of each symbol in each column */
  use uses[USES];
  use *kernels; /* most time first */
  size_t kernel_count, last;
  bool *split; /* of each item: a graph whose parts are known */
} chart;

/* ---- symbols ------------------------------------------------------------- */

static use *use_of_kernel(chart *c, const char *kernel) {
  if (c->last < c->kernel_count && c->kernels[c->last].kernel == kernel)
    return &c->kernels[c->last];
  size_t i = 0;
  while (i < c->kernel_count && c->kernels[i].kernel != kernel) i++;
  if (i == c->kernel_count) {
    if ((i & (i - 1)) == 0) { /* a power of two: full */
      use *more = realloc(c->kernels, (2 * i + 1) * sizeof *more);
      if (more == NULL) return NULL;
      c->kernels = more;
    }
    c->kernels[c->kernel_count++] = (use){.kernel = kernel, .symbol = '#'};
  }
  c->last = i;
  return &c->kernels[i];
}

/* NULL: it is not drawn. */
static use *use_of(chart *c, const tps_timeline_item *item) {
  static const uint8_t routes[] = {[TPS_ROUTE_WITHIN] = WITHIN,
                                   [TPS_ROUTE_IN] = IN,
                                   [TPS_ROUTE_OUT] = OUT,
                                   [TPS_ROUTE_ACROSS] = ACROSS,
                                   [TPS_ROUTE_HOST] = HOST};
  switch ((tps_op_kind)item->kind) {
  case TPS_OP_LAUNCH:
    return use_of_kernel(c, item->kernel != NULL ? item->kernel : "?");
  case TPS_OP_COPY: return &c->uses[routes[item->route]];
  case TPS_OP_FILL: return &c->uses[FILL];
  case TPS_OP_HOST: return &c->uses[CALLBACK];
  case TPS_OP_WAIT: return &c->uses[WAIT];
  case TPS_OP_GRAPH:
    if (item->graph != 0 || c->split[item - c->timeline->items]) return NULL;
    return &c->uses[GRAPH];
  default: return NULL;
  }
}

static int by_time(const void *x, const void *y) {
  const use *a = x, *b = y;
  if (a->ns != b->ns) return a->ns < b->ns ? 1 : -1;
  return strcmp(a->kernel, b->kernel);
}

/* What is used how often; then each kernel, the longest first, has its letter. */
static bool count_uses(chart *c) {
  const tps_timeline *t = c->timeline;
  for (size_t i = 0; i < t->count; i++)
    if (t->items[i].graph != 0) c->split[t->items[i].graph - 1] = true;
  for (int i = 0; i < USES; i++) c->uses[i].symbol = legend[i].symbol;
  for (size_t i = 0; i < t->count; i++) {
    const tps_timeline_item *item = &t->items[i];
    if (item->finished_ns == 0) continue;
    use *u = use_of(c, item);
    if (u == NULL && item->kind == TPS_OP_LAUNCH) return false;
    if (u == NULL) continue;
    u->count++;
    u->ns += item->finished_ns - item->started_ns;
    u->bytes += item->bytes;
  }
  if (c->kernel_count > 0)
    qsort(c->kernels, c->kernel_count, sizeof *c->kernels, by_time);
  for (size_t i = 0; i < c->kernel_count && i < 26; i++)
    c->kernels[i].symbol = (char)('A' + (int)i);
  return true;
}

/* ---- bars ---------------------------------------------------------------- */

static double span_of(const chart *c) {
  uint64_t ns = c->view.last_ns - c->view.first_ns;
  return ns > 0 ? (double)ns : 1;
}

static int column_of(const chart *c, uint64_t ns) {
  if (ns <= c->view.first_ns) return 0;
  double at = (double)(ns - c->view.first_ns) / span_of(c) * c->width;
  return at >= c->width ? c->width - 1 : (int)at;
}

static uint64_t time_of(const chart *c, int column) {
  return c->view.first_ns + (uint64_t)(span_of(c) * column / c->width);
}

static void paint(chart *c, char symbol, uint64_t from, uint64_t to) {
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

static char strongest(const chart *c, const uint64_t *weights) {
  char best = ' ';
  uint64_t most = 0, busy = 0;
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
  bool little = (double)busy < span_of(c) / c->width / 2;
  if (letter && little) best = (char)tolower((unsigned char)best);
  return best;
}

static void label(const chart *c, const char *text) {
  int used = tps_write_plain(c->out, text, LABEL - 1);
  fprintf(c->out, "%*s", LABEL - used, "");
}

static void bar(chart *c, const char *text) {
  label(c, text);
  fputc('|', c->out);
  for (int i = 0; i < c->width; i++)
    fputc(strongest(c, &c->weights[i * 128]), c->out);
  fputc('|', c->out);
  memset(c->weights, 0, (size_t)c->width * 128 * sizeof *c->weights);
}

/* ---- lines --------------------------------------------------------------- */

static const char *milliseconds(double ns, char out[32]) {
  double ms = ns / 1e6;
  snprintf(out, 32, ms >= 100 ? "%.0f" : ms >= 10 ? "%.1f" : "%.3g", ms);
  return out;
}

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

/* Times, some columns apart. */
static void axis(const chart *c) {
  double step = round_up(span_of(c) / c->width * 14);
  int at = 0;
  label(c, "ms");
  fputc(' ', c->out);
  for (int n = 0; n * step <= span_of(c); n++) {
    char number[32];
    int column = column_of(c, c->view.first_ns + (uint64_t)(n * step));
    snprintf(number, sizeof number, "%g", n * step / 1e6);
    if (column + (int)strlen(number) > c->width) break;
    fprintf(c->out, "%*s%s", column - at, "", number);
    at = column + (int)strlen(number);
  }
  fputc('\n', c->out);
}

static void host_lines(chart *c) {
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
static void range_line(const chart *c, uint32_t lane, uint32_t depth) {
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

static void range_lines(const chart *c) {
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

static void stream_lines(chart *c) {
  char device[32], text[80];
  const tps_row *before = NULL;
  for (uint32_t i = 0; i < c->view.row_count; i++) {
    const tps_row *row = &c->view.rows[i];
    if (c->view.device_count > 1 &&
        (before == NULL || before->device != row->device ||
         before->device_kind != row->device_kind))
      fprintf(c->out, "%s\n",
              tps_write_device(row->device_kind, row->device, device));
    before = row;
    for (uint32_t k = 0; k < row->count; k++) {
      const tps_timeline_item *item = &c->timeline->items[row->items[k]];
      const use *u = use_of(c, item);
      if (u != NULL) paint(c, u->symbol, item->started_ns, item->finished_ns);
    }
    snprintf(text, sizeof text, "stream %" PRIu64, row->stream);
    bar(c, text);
    fprintf(c->out, " %3.0f%%\n", 100 * (double)row->busy_ns / span_of(c));
  }
}

/* ---- sums ---------------------------------------------------------------- */

static void use_line(const chart *c, const use *u, const char *text) {
  char total[32], each[32], bytes[32];
  fprintf(c->out, "  %c ", u->symbol);
  int used = tps_write_plain(c->out, text, 40);
  fprintf(c->out, "%*s %8" PRIu64 " x %10s ms", used < 22 ? 22 - used : 0, "",
          u->count, milliseconds((double)u->ns, total));
  fprintf(c->out, ", %s ms each",
          milliseconds((double)u->ns / (double)u->count, each));
  if (u->bytes > 0) {
    fprintf(c->out, ", %s", tps_write_bytes(u->bytes, bytes));
    if (u->ns > 0)
      fprintf(c->out, " (%.1f GB/s)", (double)u->bytes / (double)u->ns);
  }
  fputc('\n', c->out);
}

static void legend_lines(const chart *c) {
  for (size_t i = 0; i < c->kernel_count; i++)
    use_line(c, &c->kernels[i], c->kernels[i].kernel);
  for (int i = 0; i < USES; i++)
    if (c->uses[i].count > 0) use_line(c, &c->uses[i], legend[i].text);
  fputs("  : queued   w the host waits\n", c->out);
}

static void row_sums(const chart *c) {
  char device[32], busy[32], gaps[32], longest[32];
  for (uint32_t i = 0; i < c->view.row_count; i++) {
    const tps_row *row = &c->view.rows[i];
    if (row->work == 0) continue;
    fprintf(c->out, "%s stream %" PRIu64 ": busy %s ms (%.0f%%)",
            tps_write_device(row->device_kind, row->device, device),
            row->stream, milliseconds((double)row->busy_ns, busy),
            100 * (double)row->busy_ns / span_of(c));
    if (row->gaps > 0)
      fprintf(c->out, ", %" PRIu32 " gap%s of %s ms, the longest %s ms",
              row->gaps, row->gaps == 1 ? "" : "s",
              milliseconds((double)row->gap_ns, gaps),
              milliseconds((double)row->longest_gap_ns, longest));
    fputc('\n', c->out);
  }
}

static void device_sums(const chart *c) {
  char device[32], copies[32], kernels[32], both[32];
  for (uint32_t i = 0; i < c->view.device_count; i++) {
    const tps_busy *b = &c->view.devices[i];
    if (b->copy_ns == 0 && b->kernel_ns == 0) continue;
    fprintf(c->out, "%s: kernels %s ms, copies %s ms, both at once %s ms\n",
            tps_write_device(b->device_kind, b->device, device),
            milliseconds((double)b->kernel_ns, kernels),
            milliseconds((double)b->copy_ns, copies),
            milliseconds((double)b->both_ns, both));
  }
}

static void failures(const chart *c) {
  uint64_t failed = 0, endless = 0;
  for (size_t i = 0; i < c->timeline->count; i++) {
    const tps_timeline_item *item = &c->timeline->items[i];
    if (item->failed) failed++;
    else if (item->finished_ns == 0 && item->kind != TPS_OP_ALLOC &&
             item->kind != TPS_OP_FREE)
      endless++;
  }
  if (failed > 0)
    fprintf(c->out, "%" PRIu64 " operation%s failed\n", failed,
            failed == 1 ? "" : "s");
  if (endless > 0)
    fprintf(c->out, "%" PRIu64 " operation%s had not ended\n", endless,
            endless == 1 ? "" : "s");
  if (c->timeline->dropped > 0)
    fprintf(c->out,
            "%" PRIu64 " more operations, ranges or waits were not recorded "
            "(limit %zu)\n",
            c->timeline->dropped, c->timeline->limit);
}

/* Of what is on a device; a graph counts as one. */
static size_t count_operations(const tps_timeline *t) {
  size_t count = 0;
  for (size_t i = 0; i < t->count; i++)
    count += t->items[i].graph == 0 && t->items[i].kind != TPS_OP_ALLOC &&
             t->items[i].kind != TPS_OP_FREE;
  return count;
}

static void draw(chart *c) {
  char total[32];
  size_t count = count_operations(c->timeline);
  fprintf(c->out, "timeline: %zu operation%s on %" PRIu32 " stream%s, %s ms\n",
          count, count == 1 ? "" : "s", c->view.row_count,
          c->view.row_count == 1 ? "" : "s",
          milliseconds((double)(c->view.last_ns - c->view.first_ns), total));
  if (c->view.context_count > 0) {
    axis(c);
    host_lines(c);
    range_lines(c);
    stream_lines(c);
    legend_lines(c);
    row_sums(c);
    device_sums(c);
  }
  failures(c);
}

bool tps_timeline_chart(const tps_timeline *timeline, FILE *out, int columns) {
  int width = columns - LABEL - 7;
  chart c = {.timeline = timeline, .out = out};
  c.width = width < NARROWEST ? NARROWEST : width > WIDEST ? WIDEST : width;
  if (!tps_view_make(timeline, &c.view)) return false;
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
