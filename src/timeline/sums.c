/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Below the bars of a chart: what its symbols mean, how often and how long it was,
 * and how busy streams and devices were. Tables that leave out their last columns
 * where the terminal is narrow. */
#include <inttypes.h>

#include "timeline/chart.h"

#define CELL 11       /* columns of a number */
#define LEAST_NAME 20 /* columns of a name, before numbers are left out */
#define MOST_NAME 40
#define CELLS 5

/* How many numbers there is room for, *name columns for what is before them. */
static int cells_for(const tps_chart *c, int wanted, int *name) {
  int cells = wanted;
  *name = c->columns - 4 - cells * CELL;
  while (*name < LEAST_NAME && cells > 2) {
    cells--;
    *name += CELL;
  }
  if (*name < LEAST_NAME) *name = LEAST_NAME;
  if (*name > MOST_NAME) *name = MOST_NAME;
  return cells;
}

/* A line of a table: NULL ends the texts before `wanted`. */
static void line(const tps_chart *c, char symbol, const char *text,
                 const char *const *cells, int wanted) {
  int name;
  int count = cells_for(c, wanted, &name);
  fprintf(c->out, "  %c ", symbol);
  int missing = name - tps_write_cut(c->out, text, name);
  for (int i = 0; i < count && cells[i] != NULL; i++) {
    fprintf(c->out, "%*s", missing + CELL, cells[i]);
    missing = 0;
  }
  fputc('\n', c->out);
}

/* ---- what took how long -------------------------------------------------- */

static const char *rate_of(const tps_sum *u, char out[32]) {
  char text[32];
  tps_write_bytes((uint64_t)((double)u->bytes / (double)u->ns * 1e9), text);
  snprintf(out, 32, "%.28s/s", text);
  return out;
}

static void use_line(const tps_chart *c, const tps_sum *u, const char *text) {
  char count[32], together[32], each[32], bytes[32], rate[32];
  const char *cells[CELLS] = {count, together, each};
  snprintf(count, sizeof count, "%" PRIu64, u->count);
  tps_write_lasts((double)u->ns, together);
  tps_write_lasts((double)u->ns / (double)u->count, each);
  if (u->bytes > 0) {
    cells[3] = tps_write_bytes(u->bytes, bytes);
    if (u->ns > 0) cells[4] = rate_of(u, rate);
  }
  line(c, u->symbol, text, cells, CELLS);
}

/* Those that have no letter of their own, in one. */
static void other_kernels(const tps_chart *c) {
  tps_sum others = {.symbol = '#'};
  char text[48];
  if (c->kernel_count <= TPS_LETTERS) return;
  for (size_t i = TPS_LETTERS; i < c->kernel_count; i++) {
    others.count += c->kernels[i].count;
    others.ns += c->kernels[i].ns;
  }
  snprintf(text, sizeof text, "%zu other kernels",
           c->kernel_count - TPS_LETTERS);
  use_line(c, &others, text);
}

static void uses(const tps_chart *c) {
  static const char *const heads[CELLS] = {"count", "together", "each", "bytes",
                                           "rate"};
  bool any = c->kernel_count > 0;
  for (int i = 0; i < TPS_USES; i++) any = any || c->uses[i].count > 0;
  if (!any) return;
  line(c, ' ', "", heads, CELLS);
  for (size_t i = 0; i < c->kernel_count && i < TPS_LETTERS; i++)
    use_line(c, &c->kernels[i], c->kernels[i].kernel);
  other_kernels(c);
  for (int i = 0; i < TPS_USES; i++)
    if (c->uses[i].count > 0) use_line(c, &c->uses[i], tps_signs[i].text);
}

/* ---- streams and devices ------------------------------------------------- */

static void row_line(const tps_chart *c, const tps_row *row) {
  char text[64], device[32], busy[32], share[16], gaps[32], sum[32], most[32];
  const char *cells[CELLS] = {busy, share};
  snprintf(text, sizeof text, "%s stream %" PRIu64,
           tps_write_device(row->device_kind, row->device, device),
           row->stream);
  tps_write_lasts((double)row->busy_ns, busy);
  snprintf(share, sizeof share, "%.0f%%",
           100 * (double)row->busy_ns / tps_chart_span(c));
  if (row->gaps > 0) {
    snprintf(gaps, sizeof gaps, "%" PRIu32, row->gaps);
    cells[2] = gaps;
    cells[3] = tps_write_lasts((double)row->gap_ns, sum);
    cells[4] = tps_write_lasts((double)row->longest_gap_ns, most);
  }
  line(c, ' ', text, cells, CELLS);
}

static void rows(const tps_chart *c) {
  static const char *const heads[CELLS] = {"busy", "share", "gaps", "together",
                                           "longest"};
  uint32_t count = 0;
  for (uint32_t i = 0; i < c->view.row_count; i++) {
    const tps_row *row = &c->view.rows[i];
    if (row->work == 0) continue;
    if (count++ == TPS_STREAM_LINES) break;
    if (count == 1) line(c, ' ', "", heads, CELLS);
    row_line(c, row);
  }
}

static void devices(const tps_chart *c) {
  static const char *const heads[3] = {"kernels", "copies", "overlap"};
  char device[32], copies[32], kernels[32], both[32];
  bool begun = false;
  for (uint32_t i = 0; i < c->view.device_count; i++) {
    const tps_busy *b = &c->view.devices[i];
    const char *cells[3] = {tps_write_lasts((double)b->kernel_ns, kernels),
                            tps_write_lasts((double)b->copy_ns, copies),
                            tps_write_lasts((double)b->both_ns, both)};
    if (b->copy_ns == 0 && b->kernel_ns == 0) continue;
    if (!begun) line(c, ' ', "", heads, 3);
    begun = true;
    line(c, ' ', tps_write_device(b->device_kind, b->device, device), cells, 3);
  }
}

/* ---- what is missing ----------------------------------------------------- */

#define LOST_LINES 8u /* of streams */

/* The first of a stream that did not end: it had come to its turn. */
static void lost_line(const tps_chart *c, const tps_row *row) {
  const tps_timeline_item *item = &c->timeline->items[row->lost[0]];
  char device[32], text[64], where[512];
  fprintf(c->out, "%s stream %" PRIu64 ": ",
          tps_write_device(row->device_kind, row->device, device), row->stream);
  tps_write_plain(c->out, tps_write_name(item, text, sizeof text), MOST_NAME);
  tps_write_where(item->source, item->line, where, sizeof where);
  if (where[0] != '\0') fputs(", ", c->out);
  tps_write_plain(c->out, where, (int)sizeof where);
  fputs(item->failed ? ", failed" : ", had not ended", c->out);
  if (row->lost_count > 1)
    fprintf(c->out, ", and %" PRIu32 " behind it", row->lost_count - 1);
  fputc('\n', c->out);
}

static void lost_lines(const tps_chart *c) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < c->view.row_count && count < LOST_LINES; i++) {
    if (c->view.rows[i].lost_count == 0) continue;
    lost_line(c, &c->view.rows[i]);
    count++;
  }
}

static void failures(const tps_chart *c) {
  uint64_t failed = 0, endless = 0;
  for (size_t i = 0; i < c->timeline->count; i++) {
    const tps_timeline_item *item = &c->timeline->items[i];
    if (item->failed) failed++;
    else if (tps_is_lost(item)) endless++;
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

static void signs(const tps_chart *c) {
  bool lost = false;
  for (uint32_t i = 0; i < c->view.row_count; i++)
    lost = lost || c->view.rows[i].lost_count > 0;
  fputs("  : queued   w the host waits", c->out);
  if (lost) fputs("   ? failed, or had not ended", c->out);
  fputc('\n', c->out);
}

void tps_chart_sums(const tps_chart *c) {
  if (!c->empty) {
    uses(c);
    signs(c);
    rows(c);
    devices(c);
  }
  lost_lines(c);
  failures(c);
}
