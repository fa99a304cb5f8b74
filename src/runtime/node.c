/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Nodes of graphs: lists of them, copied, compared, freed. A node owns its
 * operation's record, what it comes after, its parameters, its body. */
#include <stdlib.h>
#include <string.h>

#include "runtime/capture.h"

int tps_out_of_host_memory(tps_error *err) {
  return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
}

void *tps_grow(void *items, uint32_t count, uint32_t *capacity, size_t size,
               tps_error *err) {
  if (count < *capacity) return items;
  uint32_t room = *capacity * 2 + 8;
  void *more = realloc(items, room * size);
  if (more == NULL) tps_out_of_host_memory(err);
  else *capacity = room;
  return more;
}

tps_graph_node *tps_graph_node_append(tps_graph_node_list *list,
                                      tps_error *err) {
  tps_graph_node *nodes =
      tps_grow(list->nodes, list->count, &list->capacity, sizeof *nodes, err);
  if (nodes == NULL) return NULL;
  list->nodes = nodes;
  tps_graph_node *node = &list->nodes[list->count++];
  memset(node, 0, sizeof *node);
  return node;
}

static bool conditional(const tps_graph_node *node) {
  return node->kind == TPS_NODE_IF || node->kind == TPS_NODE_WHILE;
}

void tps_graph_node_drop(tps_graph_node *node) {
  tps_op_unref(node->op);
  free(node->after);
  if (node->kind == TPS_NODE_LAUNCH) {
    free((void *)node->u.run.launch.params);
    free(node->u.run.launch.argv);
  } else if (conditional(node)) {
    tps_graph_node_list_free(&node->u.condition.body);
  }
}

void tps_graph_node_list_free(tps_graph_node_list *list) {
  for (uint32_t i = 0; i < list->count; i++)
    tps_graph_node_drop(&list->nodes[i]);
  free(list->nodes);
  *list = (tps_graph_node_list){0};
}

int tps_graph_node_follow(tps_graph_node *node, const uint32_t *after,
                          uint32_t count, tps_error *err) {
  if (count == 0) return 0;
  node->after = malloc(count * sizeof *after);
  if (node->after == NULL) return tps_out_of_host_memory(err);
  memcpy(node->after, after, count * sizeof *after);
  node->after_count = count;
  return 0;
}

int tps_graph_node_set_launch(tps_graph_node *node, const tps_launch *launch,
                              tps_error *err) {
  size_t bytes = (launch->param_bytes + 31u) / 16 * 16;
  unsigned char *params = aligned_alloc(16, bytes);
  void **argv = calloc(launch->argc + 1, sizeof *argv);
  if (params == NULL || argv == NULL) {
    free(params);
    free(argv);
    return tps_out_of_host_memory(err);
  }
  memset(params, 0, bytes);
  if (launch->param_bytes > 0)
    memcpy(params, launch->params, launch->param_bytes);
  const unsigned char *from = launch->params;
  for (uint32_t i = 0; i < launch->argc; i++)
    argv[i] = params + ((const unsigned char *)launch->argv[i] - from);
  node->u.run.launch = *launch;
  node->u.run.launch.params = params;
  node->u.run.launch.argv = argv;
  return 0;
}

/* ---- copying ------------------------------------------------------------- */

/* What both copies of a list need. */
typedef struct copying {
  uint32_t base_id;
  bool body;
  tps_keep *keep;
  tps_context *context;
} copying;

static int copy_list(tps_graph_node_list *list, const tps_graph_node_list *from,
                     const uint32_t *tips, uint32_t count, const copying *c,
                     tps_error *err);

/* The kind's own part. */
static int copy_kind(tps_graph_node *node, const tps_graph_node *from,
                     const copying *c, tps_error *err) {
  int code = 0;
  if (from->kind == TPS_NODE_LAUNCH) {
    node->u.run.kernel = from->u.run.kernel;
    code = tps_graph_node_set_launch(node, &from->u.run.launch, err);
  } else if (from->kind == TPS_NODE_HOST) {
    code = tps_keep_notice(c->keep, c->context, err);
    if (code == 0)
      node->u.host.data = c->keep->notices[c->keep->notice_count - 1];
    node->u.host.notify = tps_notice_deliver;
  } else if (conditional(from)) {
    node->u.condition.flag = from->u.condition.flag;
    code = copy_list(&node->u.condition.body, &from->u.condition.body, NULL, 0,
                     c, err);
  } else {
    node->u = from->u;
    if (from->kind == TPS_NODE_RECORD && c->body) node->u.record.event = NULL;
  }
  return code;
}

static int copy_node(tps_graph_node *node, const tps_graph_node *from,
                     uint32_t base, const uint32_t *tips, uint32_t count,
                     const copying *c, tps_error *err) {
  node->kind = from->kind;
  node->device = from->device;
  node->op = tps_op_ref(from->op);
  node->id = c->base_id + from->id;
  int code =
      from->after_count == 0
          ? tps_graph_node_follow(node, tips, count, err)
          : tps_graph_node_follow(node, from->after, from->after_count, err);
  if (from->after_count > 0)
    for (uint32_t i = 0; i < node->after_count; i++) node->after[i] += base;
  return code != 0 ? code : copy_kind(node, from, c, err);
}

static int copy_list(tps_graph_node_list *list, const tps_graph_node_list *from,
                     const uint32_t *tips, uint32_t count, const copying *c,
                     tps_error *err) {
  uint32_t base = list->count, n = from->count; /* may be one list */
  int code = 0;
  for (uint32_t i = 0; i < n && code == 0; i++) {
    tps_graph_node *node = tps_graph_node_append(list, err);
    if (node == NULL) code = TPS_NO_HOST_MEMORY;
    else code = copy_node(node, &from->nodes[i], base, tips, count, c, err);
  }
  if (code != 0)
    while (list->count > base) tps_graph_node_drop(&list->nodes[--list->count]);
  return code;
}

int tps_graph_node_list_copy(tps_graph_node_list *list,
                             const tps_graph_node_list *from,
                             const uint32_t *tips, uint32_t count,
                             uint32_t base_id, tps_keep *keep, bool body,
                             tps_context *context, tps_error *err) {
  copying c = {base_id, body, keep, context};
  return copy_list(list, from, tips, count, &c, err);
}

/* ---- taking out ---------------------------------------------------------- */

static bool idle(const tps_graph_node *node) {
  return node->kind == TPS_NODE_RECORD && node->u.record.event == NULL;
}

static bool among(const uint32_t *items, uint32_t count, uint32_t item) {
  uint32_t i = 0;
  while (i < count && items[i] != item) i++;
  return i < count;
}

/* Instead of idle nodes it comes after what those come after, none of them idle. */
static int reroute(const tps_graph_node_list *list, tps_graph_node *node,
                   tps_error *err) {
  uint32_t *after = NULL, count = 0, capacity = 0, found = 0;
  while (found < node->after_count && !idle(&list->nodes[node->after[found]]))
    found++;
  if (found == node->after_count) return 0;
  for (uint32_t i = 0; i < node->after_count; i++) {
    const tps_graph_node *one = &list->nodes[node->after[i]];
    bool whole = !idle(one);
    for (uint32_t j = 0; j < (whole ? 1 : one->after_count); j++) {
      uint32_t earlier = whole ? node->after[i] : one->after[j];
      if (among(after, count, earlier)) continue;
      uint32_t *more = tps_grow(after, count, &capacity, sizeof *after, err);
      if (more == NULL) {
        free(after);
        return TPS_NO_HOST_MEMORY;
      }
      after = more;
      after[count++] = earlier;
    }
  }
  free(node->after);
  node->after = after;
  node->after_count = count;
  return 0;
}

/* Nothing comes after the idle ones any more. */
static int squeeze(tps_graph_node_list *list, tps_error *err) {
  uint32_t *place = malloc((list->count + 1) * sizeof *place), kept = 0;
  if (place == NULL) return tps_out_of_host_memory(err);
  for (uint32_t i = 0; i < list->count; i++) {
    tps_graph_node *node = &list->nodes[i];
    if (idle(node)) {
      tps_graph_node_drop(node);
      continue;
    }
    for (uint32_t j = 0; j < node->after_count; j++)
      node->after[j] = place[node->after[j]];
    place[i] = kept;
    list->nodes[kept++] = *node;
  }
  list->count = kept;
  free(place);
  return 0;
}

int tps_graph_node_list_prune(tps_graph_node_list *list, tps_error *err) {
  uint32_t count = 0;
  int code = 0;
  for (uint32_t i = 0; i < list->count; i++) count += idle(&list->nodes[i]);
  if (count == 0) return 0;
  for (uint32_t i = 0; i < list->count && code == 0; i++)
    code = reroute(list, &list->nodes[i], err);
  return code == 0 ? squeeze(list, err) : code;
}

/* ---- looking ------------------------------------------------------------- */

int tps_graph_node_leaves(const tps_graph_node_list *list, uint32_t **out,
                          uint32_t *count, tps_error *err) {
  bool *followed = calloc(list->count + 1, sizeof *followed);
  *out = malloc((list->count + 1) * sizeof **out);
  *count = 0;
  if (followed == NULL || *out == NULL) {
    free(followed);
    free(*out);
    *out = NULL;
    return tps_out_of_host_memory(err);
  }
  for (uint32_t i = 0; i < list->count; i++)
    for (uint32_t j = 0; j < list->nodes[i].after_count; j++)
      followed[list->nodes[i].after[j]] = true;
  for (uint32_t i = 0; i < list->count; i++)
    if (!followed[i]) (*out)[(*count)++] = i;
  free(followed);
  return 0;
}

static bool same_node(const tps_graph_node *a, const tps_graph_node *b) {
  return a->kind == b->kind && a->device == b->device &&
         a->after_count == b->after_count &&
         (a->after_count == 0 ||
          memcmp(a->after, b->after, a->after_count * sizeof *a->after) == 0);
}

bool tps_graph_node_same_shape(const tps_graph_node_list *a,
                               const tps_graph_node_list *b) {
  if (a->count != b->count) return false;
  for (uint32_t i = 0; i < a->count; i++) {
    const tps_graph_node *x = &a->nodes[i], *y = &b->nodes[i];
    if (!same_node(x, y)) return false;
    if (conditional(x) &&
        !tps_graph_node_same_shape(&x->u.condition.body, &y->u.condition.body))
      return false;
  }
  return true;
}

/* Ids ascend in a list, so the last node that is not beyond has it or has the
 * body that does. A conditional node comes after its body: its id is higher. */
tps_graph_node *tps_graph_node_find(tps_graph_node_list *list, uint32_t id,
                                    uint32_t *index) {
  uint32_t low = 0, high = list->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (list->nodes[middle].id < id) low = middle + 1;
    else high = middle;
  }
  if (low == list->count) return NULL;
  tps_graph_node *node = &list->nodes[low];
  *index = low;
  if (node->id == id) return node;
  return conditional(node)
             ? tps_graph_node_find(&node->u.condition.body, id, index)
             : NULL;
}
