/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Lines of a source that was made of a literal in which something was replaced, as
 * string.format and gsub do. */
#ifndef TPS_RTC_TEMPLATE_H
#define TPS_RTC_TEMPLATE_H

#include "rtc/rtc.h"

typedef struct tps_rtc_template tps_rtc_template;

/* NULL: no memory, or a source of too many lines. Both texts must outlive it. */
tps_rtc_template *tps_rtc_template_new(const char *source, size_t size);
/* Compares a literal, whose first line stands on `script_line`, with the source. */
void tps_rtc_template_compare(tps_rtc_template *t, const char *value,
                              size_t length, int script_line);
/* Appends what was found to the `count` parts that there are, which go before it, up to
 * `most`; returns how many there are then. What two literals explain equally well
 * belongs to neither. */
size_t tps_rtc_template_parts(const tps_rtc_template *t, tps_rtc_part *parts,
                              size_t count, size_t most);
void tps_rtc_template_free(tps_rtc_template *t);

#endif
