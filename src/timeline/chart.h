/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What a chart is made of: the bars (chart.c) and the sums below (sums.c).
 */
#ifndef TPS_TIMELINE_CHART_H
#define TPS_TIMELINE_CHART_H

#include "timeline/parts.h"

/* What a symbol stands for, in all streams together. */
typedef struct tps_sum {
  const char *kernel; /* of kernels */
  char symbol;
  uint64_t count, ns, bytes;
} tps_sum;

typedef enum tps_sum_kind {
  TPS_USE_IN,
  TPS_USE_OUT,
  TPS_USE_WITHIN,
  TPS_USE_ACROSS,
  TPS_USE_HOST,
  TPS_USE_FILL,
  TPS_USE_GRAPH,
  TPS_USE_CALLBACK,
  TPS_USE_WAIT,
  TPS_USES
} tps_sum_kind;

#define TPS_LETTERS 26u      /* kernels that have one; all others share '#' */
#define TPS_STREAM_LINES 64u /* of streams; more are only counted */

typedef struct tps_chart {
  const tps_timeline *timeline;
  tps_view view;
  FILE *out;
  int columns, width; /* of all, of the bars */
  uint64_t *weights;  /* width x 128: ns of each symbol in each column */
  tps_sum uses[TPS_USES];
  tps_sum *kernels; /* most time first */
  size_t kernel_count, last;
  bool *split; /* of each item: a graph whose parts are known */
  bool empty;  /* nothing was queued, and there is no range */
} tps_chart;

extern const struct tps_sign {
  char symbol;
  const char *text;
} tps_signs[TPS_USES];

double tps_chart_span(const tps_chart *chart); /* ns, more than 0 */
void tps_chart_sums(const tps_chart *chart);

#endif
