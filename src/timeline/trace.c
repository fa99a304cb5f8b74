/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * A timeline as Chrome's trace events, which Perfetto and chrome://tracing read:
 * each device is a process, each stream a thread of it, parts of graphs are on
 * threads of their own beneath, the host is a process, too. Times are µs. */
#include <inttypes.h>

#include "timeline/parts.h"

typedef struct trace {
  const tps_timeline *timeline;
  const tps_view *view;
  FILE *out;
  bool begun;
} trace;

#define HOST 1u            /* number of the process */
#define FIRST_RANGES 1000u /* threads of the host: after those that queue */

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

static void name(trace *t, const char *what, uint32_t process, uint32_t thread,
                 const char *text) {
  open_event(t, "M", process, thread);
  fprintf(t->out, ",\"name\":\"%s\",\"args\":{\"name\":", what);
  tps_write_json(t->out, text);
  fputs("}}", t->out);
}

/* ---- where things are drawn ---------------------------------------------- */

static uint32_t process_of(const trace *t, const tps_row *row) {
  uint32_t i = 0;
  while (t->view->devices[i].device_kind != row->device_kind ||
         t->view->devices[i].device != row->device)
    i++;
  return HOST + 1 + i;
}

/* That of the stream itself; its graphs' lanes follow. */
static uint32_t thread_of(const trace *t, const tps_row *row) {
  uint32_t thread = 1;
  for (const tps_row *r = t->view->rows; r != row; r++) thread += 1 + r->lanes;
  return thread;
}

static void name_rows(trace *t) {
  char text[96], label[32];
  for (uint32_t i = 0; i < t->view->device_count; i++)
    name(t, "process_name", HOST + 1 + i, 0,
         tps_write_device(t->view->devices[i].device_kind,
                          t->view->devices[i].device, label));
  for (uint32_t i = 0; i < t->view->row_count; i++) {
    const tps_row *row = &t->view->rows[i];
    uint32_t process = process_of(t, row), thread = thread_of(t, row);
    snprintf(text, sizeof text, "stream %" PRIu64, row->stream);
    name(t, "thread_name", process, thread, text);
    for (uint32_t lane = 0; lane < row->lanes; lane++) {
      snprintf(text, sizeof text, "stream %" PRIu64 ", in graphs %" PRIu32,
               row->stream, lane + 1);
      name(t, "thread_name", process, thread + 1 + lane, text);
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
                       uint32_t process, uint32_t thread) {
  char text[64];
  open_event(t, "X", process, thread);
  field(t, "name", tps_write_name(item, text, sizeof text));
  field(t, "cat", tps_timeline_kind(item));
  fprintf(t->out, ",\"ts\":%.3f,\"dur\":%.3f", since(t, item->started_ns),
          (double)(item->finished_ns - item->started_ns) / 1e3);
  write_args(t, item);
  fputc('}', t->out);
}

/* One end of an arrow. */
static void write_flow(trace *t, const char *phase, uint32_t id, uint64_t ns,
                       uint32_t process, uint32_t thread) {
  open_event(t, phase, process, thread);
  fprintf(t->out,
          ",\"name\":\"event\",\"cat\":\"event\",\"id\":%" PRIu32
          ",\"ts\":%.3f%s}",
          id, since(t, ns), *phase == 'f' ? ",\"bp\":\"e\"" : "");
}

/* From the record to each wait for it: the id is the wait's. */
static void write_arrow(trace *t, uint32_t wait, uint32_t process,
                        uint32_t thread, const tps_row *from) {
  const tps_timeline_item *items = t->timeline->items;
  const tps_timeline_item *record = &items[items[wait].link - 1];
  uint64_t begin = record->finished_ns, end = items[wait].finished_ns;
  uint32_t lane =
      record->graph != 0 ? 1 + t->view->lanes[items[wait].link - 1] : 0;
  write_flow(t, "s", wait + 1, begin, process_of(t, from),
             thread_of(t, from) + lane);
  write_flow(t, "f", wait + 1, end > begin ? end : begin, process, thread);
}

static const tps_row *row_of(const trace *t, const tps_timeline_item *item) {
  for (uint32_t i = 0; i < t->view->row_count; i++) {
    const tps_row *row = &t->view->rows[i];
    if (row->device_kind == item->device_kind && row->device == item->device &&
        row->stream == item->stream)
      return row;
  }
  return NULL;
}

static void write_row(trace *t, const tps_row *row) {
  const tps_timeline_item *items = t->timeline->items;
  uint32_t process = process_of(t, row), thread = thread_of(t, row);
  for (uint32_t i = 0; i < row->count; i++) {
    uint32_t index = row->items[i];
    const tps_timeline_item *item = &items[index];
    uint32_t lane = item->graph != 0 ? 1 + t->view->lanes[index] : 0;
    write_item(t, item, process, thread + lane);
    if (item->link == 0 || items[item->link - 1].finished_ns == 0) continue;
    const tps_row *from = row_of(t, &items[item->link - 1]);
    if (from != NULL) write_arrow(t, index, process, thread, from);
  }
}

/* ---- the host ------------------------------------------------------------ */

static void name_host(trace *t) {
  char text[64];
  name(t, "process_name", HOST, 0, "host");
  for (uint32_t i = 0; i < t->view->context_count; i++) {
    snprintf(text, sizeof text, i == 0 ? "Lua" : "Lua state %" PRIu32, i + 1);
    name(t, "thread_name", HOST, i + 1, text);
  }
  uint32_t lanes = 0;
  for (size_t i = 0; i < t->timeline->span_count; i++) {
    const tps_timeline_span *span = &t->timeline->spans[i];
    if (span->name != NULL && span->lane >= lanes) lanes = span->lane + 1;
  }
  for (uint32_t i = 0; i < lanes; i++)
    name(t, "thread_name", HOST, FIRST_RANGES + i, "ranges");
}

static void write_span(trace *t, const tps_timeline_span *span) {
  char text[512];
  open_event(t, "X", HOST,
             span->name != NULL ? FIRST_RANGES + span->lane
                                : 1 + tps_view_context(t->view, span->context));
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

/* When something was queued, as an instant. */
static void write_queued(trace *t, const tps_timeline_item *item) {
  char text[64];
  if (item->graph != 0) return;
  open_event(t, "i", HOST, 1 + tps_view_context(t->view, item->context));
  field(t, "name", tps_write_name(item, text, sizeof text));
  field(t, "cat", "queued");
  fprintf(t->out, ",\"s\":\"t\",\"ts\":%.3f", since(t, item->queued_ns));
  write_args(t, item);
  fputc('}', t->out);
}

bool tps_timeline_trace(const tps_timeline *timeline, FILE *out) {
  tps_view view;
  if (!tps_view_make(timeline, &view)) return false;
  trace t = {.timeline = timeline, .view = &view, .out = out};
  fprintf(out,
          "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"producer\":"
          "\"tpstream\",\"not_recorded\":%" PRIu64 "},\"traceEvents\":[",
          timeline->dropped);
  name_host(&t);
  name_rows(&t);
  for (size_t i = 0; i < timeline->span_count; i++)
    write_span(&t, &timeline->spans[i]);
  for (size_t i = 0; i < timeline->count; i++)
    write_queued(&t, &timeline->items[i]);
  for (uint32_t i = 0; i < view.row_count; i++) write_row(&t, &view.rows[i]);
  fputs("\n]}\n", out);
  tps_view_free(&view);
  return true;
}
