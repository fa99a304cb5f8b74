/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * A timeline as Chrome's trace events, which Perfetto and chrome://tracing read:
 * each device is a process, each stream a thread of it, parts of graphs are on
 * threads of their own beneath, the host is a process, too. Times are µs.
 *
 * An end of an arrow belongs to what began last on its thread, of events of the
 * same time to what stands before it in the file: so it follows its operation. */
#include <inttypes.h>
#include <stdlib.h>

#include "timeline/parts.h"

typedef struct trace {
  const tps_timeline *timeline;
  const tps_view *view;
  FILE *out;
  bool begun;
  uint32_t *waiting; /* of each item: 1 + the first wait for it, 0: none; */
  uint32_t *next;    /* of each such wait: 1 + the next */
  uint32_t process, thread; /* of the row */
} trace;

#define HOST 1u /* number of the process; the devices follow */
/* Threads have numbers that no process has: one of the same number would be taken
 * for the process's main thread. */
#define FIRST_CONTEXT 101u
#define FIRST_RANGES 1001u
#define FIRST_STREAM 10001u

static double since(const trace *t, uint64_t ns) {
  return ((double)ns - (double)t->timeline->began_ns) / 1e3;
}

static void open_event(trace *t, const char *phase, uint32_t process,
                       uint32_t thread) {
  fprintf(t->out, "%s\n{\"ph\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32,
          t->begun ? "," : "", phase, process, thread);
  t->begun = true;
}

static void field(const trace *t, const char *name, const char *text) {
  fprintf(t->out, ",\"%s\":", name);
  tps_write_json(t->out, text);
}

/* Names a process or thread, and says in which order they are shown. */
static void name(trace *t, const char *what, uint32_t process, uint32_t thread,
                 const char *text) {
  open_event(t, "M", process, thread);
  fprintf(t->out, ",\"name\":\"%s_name\",\"args\":{\"name\":", what);
  tps_write_json(t->out, text);
  fputs("}}", t->out);
  open_event(t, "M", process, thread);
  fprintf(t->out,
          ",\"name\":\"%s_sort_index\",\"args\":{\"sort_index\":%" PRIu32 "}}",
          what, *what == 'p' ? process : thread);
}

/* ---- where things are drawn ---------------------------------------------- */

/* To the row, or to the first; its graphs' lanes follow its own thread. */
static void enter_row(trace *t, const tps_row *row) {
  const tps_row *first = t->view->rows;
  if (row == first) {
    t->process = HOST + 1;
    t->thread = FIRST_STREAM;
    return;
  }
  if (row->device != row[-1].device || row->device_kind != row[-1].device_kind)
    t->process++;
  t->thread += 1 + row[-1].lanes;
}

static void name_rows(trace *t) {
  char text[96], label[32];
  for (uint32_t i = 0; i < t->view->row_count; i++) {
    const tps_row *row = &t->view->rows[i];
    uint32_t before = t->process;
    enter_row(t, row);
    if (i == 0 || t->process != before)
      name(t, "process", t->process, 0,
           tps_write_device(row->device_kind, row->device, label));
    snprintf(text, sizeof text, "stream %" PRIu64, row->stream);
    name(t, "thread", t->process, t->thread, text);
    for (uint32_t lane = 0; lane < row->lanes; lane++) {
      snprintf(text, sizeof text, "stream %" PRIu64 ", in graphs %" PRIu32,
               row->stream, lane + 1);
      name(t, "thread", t->process, t->thread + 1 + lane, text);
    }
  }
}

/* ---- what is drawn ------------------------------------------------------- */

static void write_args(const trace *t, const tps_timeline_item *item) {
  char text[512], shape[40];
  fprintf(t->out, ",\"args\":{\"queued_us\":%.3f", since(t, item->queued_ns));
  tps_write_where(item->source, item->line, text, sizeof text);
  if (text[0] != '\0') field(t, "line", text);
  if (item->kind == TPS_OP_LAUNCH) {
    field(t, "grid", tps_write_shape(item->grid, shape));
    field(t, "block", tps_write_shape(item->block, shape));
    fprintf(t->out, ",\"shared\":%" PRIu64, item->shared);
  }
  if (item->bytes > 0) fprintf(t->out, ",\"bytes\":%" PRIu64, item->bytes);
  if (item->event > 0) fprintf(t->out, ",\"event\":%" PRIu64, item->event);
  if (item->failed) fputs(",\"failed\":true", t->out);
  fputc('}', t->out);
}

static void write_item(trace *t, const tps_timeline_item *item,
                       uint32_t thread) {
  char text[64];
  open_event(t, "X", t->process, thread);
  field(t, "name", tps_write_name(item, text, sizeof text));
  field(t, "cat", tps_timeline_kind(item));
  fprintf(t->out, ",\"ts\":%.3f,\"dur\":%.3f", since(t, item->started_ns),
          (double)(item->finished_ns - item->started_ns) / 1e3);
  write_args(t, item);
  fputc('}', t->out);
}

/* What did not end: a point where it was queued. */
static void write_lost(trace *t, const tps_timeline_item *item) {
  char text[64];
  open_event(t, "i", t->process, t->thread);
  field(t, "name", tps_write_name(item, text, sizeof text));
  field(t, "cat", item->failed ? "failed" : "not ended");
  fprintf(t->out, ",\"s\":\"t\",\"ts\":%.3f", since(t, item->queued_ns));
  write_args(t, item);
  fputc('}', t->out);
}

/* One end of the arrow from a record to a wait for it: the id is the wait's. */
static void write_flow(trace *t, const char *phase, uint32_t wait, uint64_t ns,
                       uint32_t thread) {
  open_event(t, phase, t->process, thread);
  fprintf(t->out,
          ",\"name\":\"event\",\"cat\":\"event\",\"id\":%" PRIu32
          ",\"ts\":%.3f%s}",
          wait + 1, since(t, ns), *phase == 'f' ? ",\"bp\":\"e\"" : "");
}

static bool find_arrows(trace *t) {
  const tps_timeline *timeline = t->timeline;
  const tps_timeline_item *items = timeline->items;
  t->waiting = calloc(timeline->count + 1, sizeof *t->waiting);
  t->next = calloc(timeline->count + 1, sizeof *t->next);
  if (t->waiting == NULL || t->next == NULL) return false;
  for (size_t i = timeline->count; i-- > 0;) {
    uint32_t record = items[i].link;
    if (record == 0 || items[i].finished_ns == 0 ||
        items[record - 1].finished_ns == 0)
      continue;
    t->next[i] = t->waiting[record - 1];
    t->waiting[record - 1] = (uint32_t)i + 1;
  }
  return true;
}

static void write_row(trace *t, const tps_row *row) {
  const tps_timeline_item *items = t->timeline->items;
  for (uint32_t i = 0; i < row->count; i++) {
    uint32_t index = row->items[i];
    const tps_timeline_item *item = &items[index];
    uint32_t thread =
        t->thread + (item->graph != 0 ? 1 + t->view->lanes[index] : 0);
    write_item(t, item, thread);
    for (uint32_t w = t->waiting[index]; w != 0; w = t->next[w - 1])
      write_flow(t, "s", w - 1, item->finished_ns, thread);
    if (item->link != 0 && items[item->link - 1].finished_ns != 0)
      write_flow(t, "f", index, item->finished_ns, thread);
  }
  for (uint32_t i = 0; i < row->lost_count; i++)
    write_lost(t, &items[row->lost[i]]);
}

/* ---- the host ------------------------------------------------------------ */

static void name_host(trace *t) {
  char text[64];
  name(t, "process", HOST, 0, "host");
  for (uint32_t i = 0; i < t->view->context_count; i++) {
    snprintf(text, sizeof text, i == 0 ? "Lua" : "Lua state %" PRIu32, i + 1);
    name(t, "thread", HOST, FIRST_CONTEXT + i, text);
  }
  uint32_t lanes = 0;
  for (size_t i = 0; i < t->timeline->span_count; i++) {
    const tps_timeline_span *span = &t->timeline->spans[i];
    if (span->name != NULL && span->lane >= lanes) lanes = span->lane + 1;
  }
  for (uint32_t i = 0; i < lanes; i++)
    name(t, "thread", HOST, FIRST_RANGES + i, "ranges");
}

static void write_span(trace *t, const tps_timeline_span *span) {
  char text[512];
  open_event(t, "X", HOST,
             span->name != NULL
                 ? FIRST_RANGES + span->lane
                 : FIRST_CONTEXT + tps_view_context(t->view, span->context));
  field(t, "name", span->name != NULL ? span->name : "wait");
  field(t, "cat", span->name != NULL ? "range" : "host");
  fprintf(t->out, ",\"ts\":%.3f,\"dur\":%.3f,\"args\":{",
          since(t, span->began_ns),
          (double)(span->ended_ns - span->began_ns) / 1e3);
  tps_write_where(span->source, span->line, text, sizeof text);
  if (text[0] != '\0') {
    fputs("\"line\":", t->out);
    tps_write_json(t->out, text);
  }
  fputs("}}", t->out);
}

/* When something was queued, as an instant; what it is, is told where it ran. */
static void write_queued(trace *t, const tps_timeline_item *item) {
  char text[64];
  if (item->graph != 0) return;
  open_event(t, "i", HOST,
             FIRST_CONTEXT + tps_view_context(t->view, item->context));
  field(t, "name", tps_write_name(item, text, sizeof text));
  fprintf(t->out, ",\"cat\":\"queued\",\"s\":\"t\",\"ts\":%.3f",
          since(t, item->queued_ns));
  if (item->finished_ns == 0) write_args(t, item);
  fputc('}', t->out);
}

static void write_all(trace *t) {
  const tps_timeline *timeline = t->timeline;
  fprintf(t->out,
          "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"producer\":"
          "\"tpstream\",\"not_recorded\":%" PRIu64 "},\"traceEvents\":[",
          timeline->dropped);
  name_host(t);
  name_rows(t);
  for (size_t i = 0; i < timeline->span_count; i++)
    write_span(t, &timeline->spans[i]);
  for (size_t i = 0; i < timeline->count; i++)
    write_queued(t, &timeline->items[i]);
  for (uint32_t i = 0; i < t->view->row_count; i++) {
    enter_row(t, &t->view->rows[i]);
    write_row(t, &t->view->rows[i]);
  }
  fputs("\n]}\n", t->out);
}

bool tps_timeline_trace(const tps_timeline *timeline, FILE *out) {
  tps_view view;
  if (!tps_view_make(timeline, &view)) return false;
  trace t = {.timeline = timeline, .view = &view, .out = out};
  bool room = find_arrows(&t);
  if (room) write_all(&t);
  free(t.waiting);
  free(t.next);
  tps_view_free(&view);
  return room;
}
