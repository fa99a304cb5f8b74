/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Callbacks: functions of the host's that are due once the present work of a
 * stream is done. The device's thread only moves a callback into its context's
 * inbox; the context's own thread takes it from there when it sees fit. What
 * is called is not known here: a callback is a token, a number of the caller's.
 *
 * An inbox outlives its context for as long as the device may still deliver to
 * it.
 */
#ifndef TPS_RUNTIME_CALLBACK_H
#define TPS_RUNTIME_CALLBACK_H

#include "runtime/stream.h"

/* `token` will be due when the present work of the stream is done. */
int tps_callback_queue(tps_stream *stream, uint64_t token, tps_error *err);

/* True while there are callbacks that were neither taken nor lost. */
bool tps_callback_any(const tps_context *context);
/* Takes the next one that is due, in the order in which the device got there
 * (on one stream the order of queueing); false: none is. */
bool tps_callback_take(tps_context *context, uint64_t *token);
/* Takes one, due or not, whose device has faulted, and tells the fault; false:
 * there is none. */
bool tps_callback_lose(tps_context *context, uint64_t *token, tps_error *err);
/* Asks the devices about streams with callbacks that are not due, so that a
 * fault is noticed by those who only poll. */
void tps_callback_look(tps_context *context);

/* The context's end: nothing will be due any more. */
void tps_callback_end(tps_context *context);

#endif
