/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The version, in one place. */
#ifndef TPS_BASE_VERSION_H
#define TPS_BASE_VERSION_H

#define TPS_VERSION "0.1.0"

#endif
