/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * A timeline as one page for a browser, which loads nothing from elsewhere:
 * the files of page/ with the timeline as JSON in its middle. What is long (operations)
 * is written as arrays without names; `fields` tells what stands where. Times
 * are µs since the recording began. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "timeline/page.h"
#include "timeline/parts.h"

#define MARK "@DATA@\n"

/* Strings that many operations have, each written once: all of them live as
 * long as the process, so that the same text is the same pointer, mostly. */
typedef struct names {
  const char **text;
  size_t count, capacity, last[2];
} names;

typedef struct page {
  const tps_timeline *timeline;
  tps_view view;
  names names;
  FILE *out;
} page;

/* -1: no memory. `hint`: names of one kind stay the same for a while. */
static int64_t index_of(names *n, const char *text, unsigned hint) {
  if (n->last[hint] < n->count && n->text[n->last[hint]] == text)
    return (int64_t)n->last[hint];
  size_t i = 0;
  while (i < n->count && n->text[i] != text) i++;
  if (i == n->capacity) {
    size_t capacity = 2 * n->capacity + 16;
    const char **more = realloc(n->text, capacity * sizeof *more);
    if (more == NULL) return -1;
    n->text = more;
    n->capacity = capacity;
  }
  if (i == n->count) n->text[n->count++] = text;
  n->last[hint] = i;
  return (int64_t)i;
}

/* What an operation is called, as a string that stays. */
static const char *name_of(const tps_timeline_item *item) {
  static const char *const copies[] = {[TPS_ROUTE_WITHIN] = "copy within",
                                       [TPS_ROUTE_IN] = "copy in",
                                       [TPS_ROUTE_OUT] = "copy out",
                                       [TPS_ROUTE_ACROSS] = "copy across",
                                       [TPS_ROUTE_HOST] = "copy host"};
  if (item->kind == TPS_OP_LAUNCH && item->kernel != NULL) return item->kernel;
  return item->kind == TPS_OP_COPY ? copies[item->route]
                                   : tps_timeline_kind(item);
}

static double since(const page *p, uint64_t ns) {
  return ((double)ns - (double)p->timeline->began_ns) / 1e3;
}

static bool collect_names(page *p) {
  const tps_timeline *t = p->timeline;
  for (size_t i = 0; i < t->count; i++)
    if (index_of(&p->names, name_of(&t->items[i]), 0) < 0 ||
        index_of(&p->names, t->items[i].source, 1) < 0)
      return false;
  for (size_t i = 0; i < t->span_count; i++)
    if (index_of(&p->names, t->spans[i].source, 1) < 0) return false;
  return true;
}

/* ---- what is written ----------------------------------------------------- */

static void write_names(const page *p) {
  fputs(",\n\"strings\":[", p->out);
  for (size_t i = 0; i < p->names.count; i++) {
    fputs(i > 0 ? ",\n" : "\n", p->out);
    tps_write_json(p->out, p->names.text[i]);
  }
  fputs("]", p->out);
}

static void write_item(page *p, const tps_timeline_item *item) {
  char grid[40], block[40];
  bool kernel = item->kind == TPS_OP_LAUNCH;
  fprintf(p->out, "[\"%s\",%" PRId64 ",%" PRId64 ",%" PRId32 ",%" PRIu32,
          tps_timeline_kind(item), index_of(&p->names, name_of(item), 0),
          index_of(&p->names, item->source, 1), item->line,
          tps_view_context(&p->view, item->context));
  fprintf(p->out, ",%.3f", since(p, item->queued_ns));
  if (item->finished_ns != 0)
    fprintf(p->out, ",%.3f,%.3f", since(p, item->started_ns),
            (double)(item->finished_ns - item->started_ns) / 1e3);
  else fputs(",null,0", p->out);
  fprintf(p->out, ",\"%s\",\"%s\",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
          kernel ? tps_write_shape(item->grid, grid) : "",
          kernel ? tps_write_shape(item->block, block) : "", item->shared,
          item->bytes, item->event);
  fprintf(p->out, ",%" PRId64 ",%" PRId64 ",%d]", (int64_t)item->link - 1,
          (int64_t)item->graph - 1, item->failed ? 1 : 0);
}

static void write_items(page *p) {
  fputs(",\n\"fields\":[\"kind\",\"name\",\"source\",\"line\",\"context\","
        "\"queued\",\"started\",\"duration\",\"grid\",\"block\",\"shared\","
        "\"bytes\",\"event\",\"link\",\"graph\",\"failed\"],\n\"items\":[",
        p->out);
  for (size_t i = 0; i < p->timeline->count; i++) {
    fputs(i > 0 ? ",\n" : "\n", p->out);
    write_item(p, &p->timeline->items[i]);
  }
  fputs("]", p->out);
}

static void write_spans(page *p) {
  fputs(",\n\"spans\":[", p->out);
  for (size_t i = 0; i < p->timeline->span_count; i++) {
    const tps_timeline_span *s = &p->timeline->spans[i];
    fputs(i > 0 ? ",\n{\"name\":" : "\n{\"name\":", p->out);
    if (s->name != NULL) tps_write_json(p->out, s->name);
    else fputs("null", p->out);
    fprintf(p->out,
            ",\"context\":%" PRIu32 ",\"source\":%" PRId64 ",\"line\":%" PRId32
            ",\"lane\":%" PRIu32 ",\"depth\":%" PRIu32
            ",\"began\":%.3f,\"ended\":%.3f}",
            tps_view_context(&p->view, s->context),
            s->source[0] != '\0' ? index_of(&p->names, s->source, 1) : -1,
            s->line, s->lane, s->depth, since(p, s->began_ns),
            since(p, s->ended_ns));
  }
  fputs("]", p->out);
}

static void write_indices(const page *p, const uint32_t *list, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    fprintf(p->out, i > 0 ? ",%" PRIu32 : "%" PRIu32, list[i]);
}

static void write_row(const page *p, const tps_row *row) {
  char device[32];
  double span = (double)(p->view.last_ns - p->view.first_ns);
  fprintf(p->out,
          "{\"device\":\"%s\",\"stream\":%" PRIu64 ",\"lanes\":%" PRIu32
          ",\"work\":%" PRIu32 ",\"busy\":%.3f,\"busy_us\":%.3f",
          tps_write_device(row->device_kind, row->device, device), row->stream,
          row->lanes, row->work,
          span > 0 ? 100 * (double)row->busy_ns / span : 0.0,
          (double)row->busy_ns / 1e3);
  fprintf(p->out,
          ",\"gaps\":%" PRIu32 ",\"gap_us\":%.3f,\"longest_us\":%.3f"
          ",\"items\":[",
          row->gaps, (double)row->gap_ns / 1e3,
          (double)row->longest_gap_ns / 1e3);
  write_indices(p, row->items, row->count);
  fputs("],\"lost\":[", p->out);
  write_indices(p, row->lost, row->lost_count);
  fputs("]}", p->out);
}

/* Lanes are told of parts in graphs alone, as an object by index. */
static void write_lanes(const page *p) {
  bool begun = false;
  fputs(",\n\"lanes\":{", p->out);
  for (size_t i = 0; i < p->timeline->count; i++) {
    if (p->view.lanes[i] == 0) continue;
    fprintf(p->out, "%s\"%zu\":%" PRIu32, begun ? "," : "", i,
            p->view.lanes[i]);
    begun = true;
  }
  fputs("}", p->out);
}

static void write_rows(const page *p) {
  fputs(",\n\"rows\":[", p->out);
  for (uint32_t i = 0; i < p->view.row_count; i++) {
    fputs(i > 0 ? ",\n" : "\n", p->out);
    write_row(p, &p->view.rows[i]);
  }
  fputs("],\n\"devices\":[", p->out);
  for (uint32_t i = 0; i < p->view.device_count; i++) {
    char device[32];
    const tps_busy *b = &p->view.devices[i];
    fprintf(p->out,
            "%s{\"device\":\"%s\",\"kernel_us\":%.3f,\"copy_us\":%.3f"
            ",\"both_us\":%.3f}",
            i > 0 ? "," : "",
            tps_write_device(b->device_kind, b->device, device),
            (double)b->kernel_ns / 1e3, (double)b->copy_ns / 1e3,
            (double)b->both_ns / 1e3);
  }
  fputs("],\n\"contexts\":[", p->out);
  for (uint32_t i = 0; i < p->view.context_count; i++)
    fprintf(p->out, i > 0 ? ",%" PRIu64 : "%" PRIu64, p->view.contexts[i]);
  fputs("]", p->out);
}

static void write_data(page *p, const char *title) {
  fputs("{\"title\":", p->out);
  tps_write_json(p->out, title);
  fprintf(p->out,
          ",\"first\":%.3f,\"last\":%.3f,\"dropped\":%" PRIu64 ",\"limit\":%zu",
          since(p, p->view.first_ns), since(p, p->view.last_ns),
          p->timeline->dropped, p->timeline->limit);
  write_rows(p);
  write_lanes(p);
  write_items(p);
  write_spans(p);
  write_names(p);
  fputs("}\n", p->out);
}

bool tps_timeline_page(const tps_timeline *timeline, FILE *out,
                       const char *title) {
  const char *text = (const char *)tps_timeline_page_html;
  const char *mark = strstr(text, MARK);
  page p = {.timeline = timeline, .out = out};
  if (mark == NULL || !tps_view_make(timeline, &p.view)) return false;
  bool room = collect_names(&p);
  if (room) {
    fwrite(text, 1, (size_t)(mark - text), out);
    write_data(&p, title);
    fputs(mark + sizeof MARK - 1, out);
  }
  free(p.names.text);
  tps_view_free(&p.view);
  return room;
}
