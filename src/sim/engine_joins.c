/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Post-dominators of a kernel's basic blocks by the algorithm of Cooper, Harvey
 * and Kennedy on the reversed graph, then what each barrier is control-dependent
 * on, directly and by way of other branches.
 */
#include "sim/engine_joins.h"

#include <stdlib.h>

#define NONE UINT32_MAX
#define MOST_BLOCKS 60000u
#define MOST_BARRIERS 1000u

typedef struct block {
  uint32_t first, end; /* instructions */
  uint32_t to[2];      /* successors; NONE */
  const branch_table *table;
  uint32_t order; /* in reversed post-order of the reversed graph; NONE */
  uint32_t post;  /* immediate post-dominator */
  bool seen;
  bool ends; /* nothing but the end of the thread */
} block;

typedef struct graph {
  const struct tps_sim_kernel *kernel;
  const insn *entry;
  uint32_t length;    /* instructions */
  uint32_t *block_of; /* by instruction */
  block *blocks;      /* the last one is the exit */
  uint32_t count;     /* of blocks without the exit */
  /* Edges to a block, for the way back: `from` by block, then by edge. */
  uint32_t *edge_at, *edges;
  uint32_t *sequence;          /* blocks by order */
  uint32_t *ruler_at, *rulers; /* branches that decide about a block */
  uint32_t ordered;
} graph;

/* --- instructions -------------------------------------------------------- */

static bool is_end(const insn *i) { return i->op == H_exit || i->op == H_ret; }
static bool is_guarded(const insn *i) { return i->fn != i->inner; }
static bool is_jump(const insn *i) {
  return i->op == H_bra || i->op == H_bra_back;
}
static bool is_branch(const insn *i) {
  return i->op == H_cbra || i->op == H_cbra_not || i->op == H_cbra_back ||
         i->op == H_cbra_not_back;
}
static bool is_fatal(const insn *i) {
  return i->op == H_trap || i->op == H_brkpt || i->op == H_assertfail;
}
static bool ends_block(const insn *i) {
  return is_end(i) || is_jump(i) || is_branch(i) || is_fatal(i) ||
         i->op == H_brx;
}
/* A call counts as what is called may hold a barrier. */
static bool may_sync(const insn *i) {
  return i->op == H_barrier || i->op == H_call || i->op == H_call_indirect;
}

/* --- blocks -------------------------------------------------------------- */

static void mark_targets(const graph *g, bool *begins) {
  for (uint32_t k = 0; k < g->length; k++) {
    const insn *i = &g->entry[k];
    if (!ends_block(i)) continue;
    begins[k + 1] = true;
    if (is_jump(i) || is_branch(i)) begins[i->target - g->entry] = true;
    const branch_table *t = i->op == H_brx ? i->side : NULL;
    for (uint32_t n = 0; t && n < t->count; n++)
      begins[t->targets[n] - g->entry] = true;
  }
}

static bool cut(graph *g) {
  bool *begins = calloc(g->length + 1, sizeof *begins);
  g->block_of = calloc(g->length + 1, sizeof *g->block_of);
  if (begins && g->block_of) {
    begins[0] = true;
    mark_targets(g, begins);
    for (uint32_t k = 0; k < g->length; k++) {
      g->count += begins[k];
      g->block_of[k] = g->count - 1;
    }
    g->blocks = calloc(g->count + 1, sizeof *g->blocks);
  }
  for (uint32_t k = 0; g->blocks && k < g->length; k++) {
    block *b = &g->blocks[g->block_of[k]];
    if (begins[k]) b->first = k;
    b->end = k + 1;
  }
  free(begins);
  return g->blocks != NULL && g->count < MOST_BLOCKS;
}

static uint32_t block_at(const graph *g, const insn *i) {
  return g->block_of[i - g->entry];
}

/* The block behind `b`, or the exit. */
static uint32_t next_of(const graph *g, uint32_t b) {
  return b + 1 < g->count ? b + 1 : g->count;
}

static void connect(graph *g) {
  for (uint32_t k = 0; k <= g->count; k++) {
    block *b = &g->blocks[k];
    b->to[0] = b->to[1] = b->order = b->post = NONE;
    if (k == g->count) break;
    const insn *i = &g->entry[b->end - 1];
    bool goes_on = !ends_block(i) || is_branch(i) || is_guarded(i);
    if (goes_on) b->to[0] = next_of(g, k);
    if (is_end(i)) b->to[1] = g->count;
    if (is_jump(i) || is_branch(i)) b->to[1] = block_at(g, i->target);
    if (i->op == H_brx) b->table = i->side;
    b->ends = b->end == b->first + 1 && is_end(i) && !is_guarded(i);
  }
}

/* The blocks that may follow `b`, some of them NONE. */
static uint32_t successor_count(const block *b) {
  return 2 + (b->table ? b->table->count : 0);
}
static uint32_t successor(const graph *g, const block *b, uint32_t n) {
  return n < 2 ? b->to[n] : block_at(g, b->table->targets[n - 2]);
}

static bool turn_edges(graph *g) {
  uint32_t total = 0;
  g->edge_at = calloc(g->count + 2, sizeof *g->edge_at);
  if (!g->edge_at) return false;
  for (uint32_t k = 0; k < g->count; k++)
    for (uint32_t n = 0; n < successor_count(&g->blocks[k]); n++) {
      uint32_t to = successor(g, &g->blocks[k], n);
      if (to != NONE) g->edge_at[to + 1]++, total++;
    }
  for (uint32_t k = 0; k <= g->count; k++) g->edge_at[k + 1] += g->edge_at[k];
  uint32_t *fill = malloc((g->count + 1) * sizeof *fill);
  g->edges = calloc(total + 1, sizeof *g->edges);
  bool good = fill && g->edges;
  if (good) memcpy(fill, g->edge_at, (g->count + 1) * sizeof *fill);
  for (uint32_t k = 0; good && k < g->count; k++)
    for (uint32_t n = 0; n < successor_count(&g->blocks[k]); n++) {
      uint32_t to = successor(g, &g->blocks[k], n);
      if (to != NONE) g->edges[fill[to]++] = k;
    }
  free(fill);
  return good;
}

/* --- post-dominators ----------------------------------------------------- */

/* Numbers the blocks that lead to the exit, in post-order from there. */
static bool number(graph *g) {
  uint32_t *stack = malloc((g->count + 1) * sizeof *stack), top = 0;
  uint32_t *at = calloc(g->count + 1, sizeof *at);
  g->sequence = malloc((g->count + 1) * sizeof *g->sequence);
  bool good = stack && at && g->sequence;
  if (good) stack[top++] = g->count, g->blocks[g->count].seen = true;
  while (good && top) {
    uint32_t b = stack[top - 1];
    uint32_t edge = g->edge_at[b] + at[b]++;
    if (edge < g->edge_at[b + 1]) {
      uint32_t from = g->edges[edge];
      if (!g->blocks[from].seen) stack[top++] = from;
      g->blocks[from].seen = true;
      continue;
    }
    g->blocks[b].order = g->ordered;
    g->sequence[g->ordered++] = b;
    top--;
  }
  free(stack);
  free(at);
  return good;
}

static uint32_t common(const graph *g, uint32_t x, uint32_t y) {
  while (x != y) {
    while (g->blocks[x].order < g->blocks[y].order) x = g->blocks[x].post;
    while (g->blocks[y].order < g->blocks[x].order) y = g->blocks[y].post;
  }
  return x;
}

static bool refine(graph *g, uint32_t k) {
  block *b = &g->blocks[k];
  uint32_t post = NONE;
  for (uint32_t n = 0; n < successor_count(b); n++) {
    uint32_t to = successor(g, b, n);
    if (to == NONE || g->blocks[to].post == NONE) continue;
    post = post == NONE ? to : common(g, to, post);
  }
  bool changed = post != b->post;
  b->post = post;
  return changed;
}

static void find_post_dominators(graph *g) {
  bool changed = true;
  g->blocks[g->count].post = g->count;
  while (changed) {
    changed = false;
    for (uint32_t n = g->ordered - 1; n-- > 0;)
      changed |= refine(g, g->sequence[n]);
  }
}

static bool is_known(const graph *g, uint32_t b) {
  return b != NONE && g->blocks[b].order != NONE;
}

/* --- joins --------------------------------------------------------------- */

/* What the branch at the end of `x` decides about lies on the way from each of its
 * successors up the tree to where they meet. Counts it in `at`, or notes `x` for it
 * in `list`. */
static void decide(const graph *g, uint32_t x, uint32_t *at, uint32_t *list) {
  const block *from = &g->blocks[x];
  if (!is_known(g, x)) return;
  for (uint32_t n = 0; n < successor_count(from); n++) {
    uint32_t b = successor(g, from, n);
    if (!is_known(g, b)) continue;
    for (; b != from->post; b = g->blocks[b].post) {
      if (list) list[at[b]++] = x;
      else at[b + 1]++;
    }
  }
}

/* Who decides about each block, by block: `ruler_at`, `rulers`. */
static bool find_rulers(graph *g) {
  g->ruler_at = calloc(g->count + 2, sizeof *g->ruler_at);
  uint32_t *fill = malloc((g->count + 2) * sizeof *fill);
  bool good = g->ruler_at && fill;
  for (uint32_t x = 0; good && x < g->count; x++)
    decide(g, x, g->ruler_at, NULL);
  for (uint32_t k = 0; good && k <= g->count; k++)
    g->ruler_at[k + 1] += g->ruler_at[k];
  if (good) {
    g->rulers = calloc(g->ruler_at[g->count + 1] + 1, sizeof *g->rulers);
    memcpy(fill, g->ruler_at, (g->count + 2) * sizeof *fill);
    good = g->rulers != NULL;
  }
  for (uint32_t x = 0; good && x < g->count; x++) decide(g, x, fill, g->rulers);
  free(fill);
  return good;
}

static unsigned join_number(const graph *g, joins *j, uint32_t b) {
  uint8_t *at = &j->number[g->blocks[b].first];
  if (!*at && j->count < MOST_JOINS) *at = (uint8_t)++j->count;
  return *at;
}

/* Adds the joins of what `b` depends on to a set. `todo` has room for every block,
 * `seen` is clear. */
static void collect(const graph *g, joins *j, uint32_t b, uint64_t *set,
                    uint32_t *todo, bool *seen) {
  uint32_t left = 0;
  todo[left++] = b;
  while (left) {
    uint32_t at = todo[--left];
    for (uint32_t n = g->ruler_at[at]; n < g->ruler_at[at + 1]; n++) {
      uint32_t x = g->rulers[n], join = g->blocks[x].post;
      if (seen[x]) continue;
      seen[x] = true;
      todo[left++] = x;
      if (join == g->count || g->blocks[join].ends) continue;
      unsigned number = join_number(g, j, join);
      j->opens[g->blocks[x].end - 1] = (uint8_t)number;
      set[number / 64] |= UINT64_C(1) << number % 64;
    }
  }
}

static bool fill_sets(const graph *g, joins *j, uint32_t barriers) {
  uint32_t *todo = malloc((g->count + 1) * sizeof *todo), sets = 0;
  bool *seen = malloc(g->count + 1);
  j->number = calloc(g->length + 1, sizeof *j->number);
  j->opens = calloc(g->length + 1, sizeof *j->opens);
  j->set_of = calloc(g->length + 1, sizeof *j->set_of);
  j->sets = calloc(barriers + 1, sizeof *j->sets);
  bool good = todo && seen && j->number && j->opens && j->set_of && j->sets;
  for (uint32_t k = 0; good && k < g->length; k++) {
    uint32_t b = g->block_of[k];
    if (!may_sync(&g->entry[k]) || !is_known(g, b)) continue;
    memset(seen, 0, g->count + 1);
    j->set_of[k] = (uint16_t)++sets;
    collect(g, j, b, j->sets[sets], todo, seen);
  }
  free(todo);
  free(seen);
  return good;
}

static void graph_free(graph *g) {
  free(g->block_of);
  free(g->blocks);
  free(g->edge_at);
  free(g->edges);
  free(g->sequence);
  free(g->ruler_at);
  free(g->rulers);
}

static bool has_barrier(const struct tps_sim_kernel *kernel) {
  for (uint32_t k = 0; k < kernel->insn_count; k++)
    if (kernel->insns[k].op == H_barrier) return true;
  return false;
}

joins *tps_sim_joins_new(const struct tps_sim_kernel *kernel) {
  const function *f = kernel->main;
  graph g = {.kernel = kernel,
             .entry = f->entry,
             .length = (uint32_t)(f->end - f->entry)};
  uint32_t barriers = 0;
  for (uint32_t k = 0; k < g.length; k++) barriers += may_sync(&g.entry[k]);
  if (barriers > MOST_BARRIERS || !has_barrier(kernel)) return NULL;
  joins *j = calloc(1, sizeof *j);
  bool good = j && cut(&g);
  if (good) {
    connect(&g);
    good = turn_edges(&g) && number(&g);
  }
  if (good) {
    find_post_dominators(&g);
    good = find_rulers(&g) && fill_sets(&g, j, barriers);
  }
  graph_free(&g);
  if (good && j->count) return j;
  tps_sim_joins_free(j);
  return NULL;
}

void tps_sim_joins_free(joins *j) {
  if (!j) return;
  free(j->number);
  free(j->opens);
  free(j->set_of);
  free(j->sets);
  free(j);
}

bool tps_sim_is_join_of(const struct tps_sim_kernel *kernel,
                        const insn *barrier, unsigned join) {
  const joins *j = kernel->joins;
  const function *f = kernel->main;
  if (!j || !join || barrier < f->entry || barrier >= f->end) return false;
  const uint64_t *set = j->sets[j->set_of[barrier - f->entry]];
  return set[join / 64] >> join % 64 & 1;
}
