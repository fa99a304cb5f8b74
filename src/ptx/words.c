/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The words of the language: mnemonics, modifiers, types, spaces, and the
 * splitting of an opcode into them.
 */
#include "ptx/words.h"

#include <stdio.h>
#include <string.h>

const char *const tps_ptx_op_names[TPS_PTX_OP_COUNT] = {
#define X(symbol, text) text,
    TPS_PTX_OPS(X)
#undef X
};

const char *const tps_ptx_mod_names[TPS_PTX_M_COUNT] = {
#define X(symbol, text) text,
    TPS_PTX_MODS(X)
#undef X
};

/* Order of the bytes of word[0..size) and of a text. */
static int compare(const char *word, size_t size, const char *text) {
  int order = strncmp(word, text, size);
  return order != 0 ? order : -(text[size] != '\0');
}

static int search(const char *const *names, int count, const char *word,
                  size_t size) {
  int low = 0, high = count;
  while (low < high) {
    int middle = (low + high) / 2;
    int order = compare(word, size, names[middle]);
    if (order == 0) return middle;
    if (order < 0) high = middle;
    else low = middle + 1;
  }
  return -1;
}

int tps_ptx_find_op(const char *word, size_t size) {
  return search(tps_ptx_op_names, TPS_PTX_OP_COUNT, word, size);
}

/* m64n8k16 … m64n256k256: one number for all shapes of wgmma. */
static bool is_wgmma_shape(const char *word, size_t size) {
  char text[16];
  unsigned n, k;
  int end = 0;
  if (size >= sizeof text || size < 8 || memcmp(word, "m64n", 4) != 0)
    return false;
  memcpy(text, word, size);
  text[size] = '\0';
  return sscanf(text, "m64n%3uk%3u%n", &n, &k, &end) == 2 &&
         (size_t)end == size && n >= 8 && n <= 256 && n % 8 == 0 &&
         (k == 8 || k == 16 || k == 32 || k == 64 || k == 256);
}

int tps_ptx_find_mod(const char *word, size_t size) {
  if (is_wgmma_shape(word, size)) return TPS_PTX_M_M64NK;
  if (size == 3 && memcmp(word, "NaN", 3) == 0) return TPS_PTX_M_NAN;
  return search(tps_ptx_mod_names, TPS_PTX_M_COUNT, word, size);
}

typedef struct type_row {
  const char *name;
  uint8_t size;
} type_row;

static const type_row types[TPS_PTX_TYPE_COUNT] = {
    [TPS_PTX_NOTYPE] = {"", 0},
    [TPS_PTX_PRED] = {"pred", 1},
    [TPS_PTX_B8] = {"b8", 1},
    [TPS_PTX_B16] = {"b16", 2},
    [TPS_PTX_B32] = {"b32", 4},
    [TPS_PTX_B64] = {"b64", 8},
    [TPS_PTX_B128] = {"b128", 16},
    [TPS_PTX_U8] = {"u8", 1},
    [TPS_PTX_U16] = {"u16", 2},
    [TPS_PTX_U32] = {"u32", 4},
    [TPS_PTX_U64] = {"u64", 8},
    [TPS_PTX_S8] = {"s8", 1},
    [TPS_PTX_S16] = {"s16", 2},
    [TPS_PTX_S32] = {"s32", 4},
    [TPS_PTX_S64] = {"s64", 8},
    [TPS_PTX_F16] = {"f16", 2},
    [TPS_PTX_F16X2] = {"f16x2", 4},
    [TPS_PTX_BF16] = {"bf16", 2},
    [TPS_PTX_BF16X2] = {"bf16x2", 4},
    [TPS_PTX_F32] = {"f32", 4},
    [TPS_PTX_F64] = {"f64", 8},
    [TPS_PTX_TF32] = {"tf32", 4},
    [TPS_PTX_E4M3] = {"e4m3", 1},
    [TPS_PTX_E5M2] = {"e5m2", 1},
    [TPS_PTX_E4M3X2] = {"e4m3x2", 2},
    [TPS_PTX_E5M2X2] = {"e5m2x2", 2},
    [TPS_PTX_U16X2] = {"u16x2", 4},
    [TPS_PTX_S16X2] = {"s16x2", 4},
    [TPS_PTX_TEXREF] = {"texref", 8},
    [TPS_PTX_SAMPLERREF] = {"samplerref", 8},
    [TPS_PTX_SURFREF] = {"surfref", 8},
    [TPS_PTX_B1] = {"b1", 1},
    [TPS_PTX_U4] = {"u4", 1},
    [TPS_PTX_S4] = {"s4", 1},
    [TPS_PTX_F32X2] = {"f32x2", 8},
    [TPS_PTX_E3M2] = {"e3m2", 1},
    [TPS_PTX_E2M3] = {"e2m3", 1},
    [TPS_PTX_E2M1] = {"e2m1", 1},
    [TPS_PTX_UE8M0] = {"ue8m0", 1},
    [TPS_PTX_UE4M3] = {"ue4m3", 1},
    [TPS_PTX_E3M2X2] = {"e3m2x2", 2},
    [TPS_PTX_E2M3X2] = {"e2m3x2", 2},
    [TPS_PTX_E2M1X2] = {"e2m1x2", 1},
    [TPS_PTX_UE8M0X2] = {"ue8m0x2", 2},
    [TPS_PTX_E4M3X4] = {"e4m3x4", 4},
    [TPS_PTX_E5M2X4] = {"e5m2x4", 4},
    [TPS_PTX_E3M2X4] = {"e3m2x4", 4},
    [TPS_PTX_E2M3X4] = {"e2m3x4", 4},
    [TPS_PTX_E2M1X4] = {"e2m1x4", 2},
    [TPS_PTX_B1024] = {"b1024", 128}, /* a tensor map */
};

int tps_ptx_find_type(const char *word, size_t size) {
  if (size < 2 || size > 10) return TPS_PTX_NOTYPE;
  for (int t = TPS_PTX_PRED; t < TPS_PTX_TYPE_COUNT; t++)
    if (compare(word, size, types[t].name) == 0) return t;
  return TPS_PTX_NOTYPE;
}

const char *tps_ptx_type_name(tps_ptx_type type) {
  return type < TPS_PTX_TYPE_COUNT ? types[type].name : "";
}

unsigned tps_ptx_type_size(tps_ptx_type type) {
  return type < TPS_PTX_TYPE_COUNT ? types[type].size : 0;
}

bool tps_ptx_type_is_float(tps_ptx_type type) {
  return type == TPS_PTX_F16 || type == TPS_PTX_BF16 || type == TPS_PTX_F32 ||
         type == TPS_PTX_F64;
}

static const struct {
  const char *name;
  uint8_t space;
} spaces[] = {
    {"global", TPS_PTX_GLOBAL},
    {"shared", TPS_PTX_SHARED},
    {"param", TPS_PTX_PARAM},
    {"const", TPS_PTX_CONST},
    {"local", TPS_PTX_LOCAL},
    {"reg", TPS_PTX_REG},
    {"shared::cta", TPS_PTX_SHARED},
    {"shared::cluster", TPS_PTX_SHARED_CLUSTER},
    {"param::entry", TPS_PTX_PARAM},
    {"param::func", TPS_PTX_PARAM},
};

int tps_ptx_find_space(const char *word, size_t size) {
  for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
    if (compare(word, size, spaces[i].name) == 0) return spaces[i].space;
  return TPS_PTX_GENERIC;
}

const char *tps_ptx_space_name(tps_ptx_space space) {
  for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
    if (spaces[i].space == space) return spaces[i].name;
  return "generic";
}

static int find_vector(const char *word, size_t size) {
  if (size != 2 || word[0] != 'v') return 0;
  return word[1] == '2' || word[1] == '4' || word[1] == '8' ? word[1] - '0' : 0;
}

/* One word after a dot into its place of *out. */
static bool add_word(tps_ptx_instruction *out, const char *word, size_t size) {
  int found = find_vector(word, size);
  if (found != 0) {
    out->vector = (uint8_t)found;
    return true;
  }
  found = tps_ptx_find_type(word, size);
  if (found != TPS_PTX_NOTYPE) {
    if (out->type_count == TPS_PTX_MAX_TYPES) return false;
    out->types[out->type_count++] = (uint8_t)found;
    return true;
  }
  found = tps_ptx_find_space(word, size);
  if (found != TPS_PTX_GENERIC) {
    if (out->space == TPS_PTX_GENERIC) out->space = (uint8_t)found;
    else if (out->space2 == TPS_PTX_GENERIC) out->space2 = (uint8_t)found;
    else return false;
    return true;
  }
  found = tps_ptx_find_mod(word, size);
  if (found < 0 || out->mod_count == TPS_PTX_MAX_MODS) return false;
  out->mods[out->mod_count++] = (uint16_t)found;
  return true;
}

bool tps_ptx_split(const char *opcode, size_t size, tps_ptx_instruction *out) {
  const char *end = opcode + size, *dot = memchr(opcode, '.', size);
  memset(out, 0, sizeof *out);
  out->vector = 1;
  out->guard = out->loc = -1;
  int op = tps_ptx_find_op(opcode, (size_t)((dot ? dot : end) - opcode));
  if (op < 0) return false;
  out->op = (uint16_t)op;
  while (dot != NULL) {
    const char *word = dot + 1;
    dot = memchr(word, '.', (size_t)(end - word));
    if (!add_word(out, word, (size_t)((dot ? dot : end) - word))) return false;
  }
  return true;
}

bool tps_ptx_split_opcode(const char *opcode, tps_ptx_instruction *out) {
  return tps_ptx_split(opcode, strlen(opcode), out);
}

bool tps_ptx_has(const tps_ptx_instruction *instruction, tps_ptx_mod mod) {
  for (unsigned i = 0; i < instruction->mod_count; i++)
    if (instruction->mods[i] == mod) return true;
  return false;
}

typedef struct sreg_row {
  const char *name;
  uint8_t sreg, components;
  bool wide; /* 64 bits */
} sreg_row;

static const sreg_row sregs[] = {
    {"%tid", TPS_PTX_TID, 4, false},
    {"%ntid", TPS_PTX_NTID, 4, false},
    {"%ctaid", TPS_PTX_CTAID, 4, false},
    {"%nctaid", TPS_PTX_NCTAID, 4, false},
    {"%clusterid", TPS_PTX_CLUSTERID, 4, false},
    {"%nclusterid", TPS_PTX_NCLUSTERID, 4, false},
    {"%cluster_ctaid", TPS_PTX_CLUSTER_CTAID, 4, false},
    {"%cluster_nctaid", TPS_PTX_CLUSTER_NCTAID, 4, false},
    {"%laneid", TPS_PTX_LANEID, 0, false},
    {"%warpid", TPS_PTX_WARPID, 0, false},
    {"%nwarpid", TPS_PTX_NWARPID, 0, false},
    {"%smid", TPS_PTX_SMID, 0, false},
    {"%nsmid", TPS_PTX_NSMID, 0, false},
    {"%gridid", TPS_PTX_GRIDID, 0, true},
    {"%is_explicit_cluster", TPS_PTX_IS_EXPLICIT_CLUSTER, 0, false},
    {"%cluster_ctarank", TPS_PTX_CLUSTER_CTARANK, 0, false},
    {"%cluster_nctarank", TPS_PTX_CLUSTER_NCTARANK, 0, false},
    {"%lanemask_eq", TPS_PTX_LANEMASK_EQ, 0, false},
    {"%lanemask_le", TPS_PTX_LANEMASK_LE, 0, false},
    {"%lanemask_lt", TPS_PTX_LANEMASK_LT, 0, false},
    {"%lanemask_ge", TPS_PTX_LANEMASK_GE, 0, false},
    {"%lanemask_gt", TPS_PTX_LANEMASK_GT, 0, false},
    {"%clock", TPS_PTX_CLOCK, 0, false},
    {"%clock_hi", TPS_PTX_CLOCK_HI, 0, false},
    {"%clock64", TPS_PTX_CLOCK64, 0, true},
    {"%globaltimer", TPS_PTX_GLOBALTIMER, 0, true},
    {"%globaltimer_lo", TPS_PTX_GLOBALTIMER_LO, 0, false},
    {"%globaltimer_hi", TPS_PTX_GLOBALTIMER_HI, 0, false},
    {"%total_smem_size", TPS_PTX_TOTAL_SMEM_SIZE, 0, false},
    {"%dynamic_smem_size", TPS_PTX_DYNAMIC_SMEM_SIZE, 0, false},
    {"%aggr_smem_size", TPS_PTX_AGGR_SMEM_SIZE, 0, false},
    {"%reserved_smem_offset_begin", TPS_PTX_RESERVED_SMEM_OFFSET, 0, false},
    {"%reserved_smem_offset_end", TPS_PTX_RESERVED_SMEM_END, 0, false},
    {"%reserved_smem_offset_cap", TPS_PTX_RESERVED_SMEM_CAP, 0, false},
    {"%reserved_smem_offset_0", TPS_PTX_RESERVED_SMEM_OFFSET, 0, false},
    {"%reserved_smem_offset_1", TPS_PTX_RESERVED_SMEM_OFFSET, 0, false},
    {"%current_graph_exec", TPS_PTX_CURRENT_GRAPH_EXEC, 0, true},
};

/* "%pm0" … "%pm7", "%pm0_64"; "%envreg0" … "%envreg31". */
static bool numbered_sreg(const char *name, size_t size,
                          tps_ptx_sreg_found *out) {
  size_t stem = size > 3 && memcmp(name, "%pm", 3) == 0       ? 3
                : size > 7 && memcmp(name, "%envreg", 7) == 0 ? 7
                                                              : size;
  unsigned n = 0;
  size_t i = stem;
  for (; i < size && i < stem + 2 && name[i] >= '0' && name[i] <= '9'; i++)
    n = n * 10 + (unsigned)(name[i] - '0');
  bool wide = stem == 3 && compare(name + i, size - i, "_64") == 0;
  if (i == stem || (i != size && !wide) || n > (stem == 3 ? 7 : 31))
    return false;
  *out = (tps_ptx_sreg_found){
      .sreg = stem == 3 ? TPS_PTX_PM : TPS_PTX_ENVREG + (int)n,
      .type = wide ? TPS_PTX_U64 : TPS_PTX_U32,
  };
  return true;
}

bool tps_ptx_find_sreg(const char *name, size_t size, tps_ptx_sreg_found *out) {
  for (size_t i = 0; i < sizeof sregs / sizeof sregs[0]; i++)
    if (compare(name, size, sregs[i].name) == 0) {
      *out = (tps_ptx_sreg_found){
          .sreg = sregs[i].sreg,
          .components = sregs[i].components,
          .type = sregs[i].wide ? TPS_PTX_U64 : TPS_PTX_U32,
      };
      return true;
    }
  return numbered_sreg(name, size, out);
}
