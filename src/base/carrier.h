/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The template that carries types out of a compile. The compiling side declares
 * it and reads its instances' names; they stay in the PTX, where the simulated
 * device keeps them out of kernels' reach and of reports.
 */
#ifndef TPS_BASE_CARRIER_H
#define TPS_BASE_CARRIER_H

/* How the symbols of its instances begin. */
#define TPS_CARRIER_PREFIX "_Z14__tpstream_sigI"

#endif
