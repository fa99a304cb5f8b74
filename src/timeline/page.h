/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The files of page/ in one, which cmake/embed.cmake makes a part of the product. */
#ifndef TPS_TIMELINE_PAGE_H
#define TPS_TIMELINE_PAGE_H

extern const unsigned char tps_timeline_page_html[]; /* ended by NUL */

#endif
