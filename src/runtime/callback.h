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

#include "runtime/event.h"

/* `token` will be due when the present work of the stream is done. */
int tps_callback_queue(tps_stream *stream, uint64_t token, tps_error *err);

/* For somebody who waits, what there is to wait for: 0 if all is done. Else
 * NOT_READY, and *token is that of a wait for the same which goes on, or 0. */
int tps_callback_ask_stream(tps_stream *stream, uint64_t *token,
                            tps_error *err);
int tps_callback_ask_event(tps_event *event, uint64_t *token, tps_error *err);

/* As tps_callback_queue, but observers see no operation and, once the token is
 * taken, a wait. Work queued on the event's stream since the record delays
 * nothing. */
int tps_callback_await_stream(tps_stream *stream, uint64_t token,
                              tps_error *err);
int tps_callback_await_event(tps_event *event, uint64_t token, tps_error *err);

/* A callback that no device delivers: whoever has it, on whatever thread, does
 * that exactly once, also after the context's end. */
typedef struct tps_callback tps_callback;
tps_callback *tps_callback_new(tps_context *context, uint64_t token,
                               tps_error *err);
void tps_callback_deliver(tps_callback *callback);

/* True while there are callbacks that were neither taken nor lost. */
bool tps_callback_any(const tps_context *context);
/* Takes the next one that is due, in the order in which the device got there
 * (on one stream the order of queueing); false: none is. *code is 0, or, for somebody
 * who waits, that of a fault of another device on which part of it has run. */
bool tps_callback_take(tps_context *context, uint64_t *token, int *code,
                       tps_error *err);
/* Takes one, due or not, whose device has faulted, and tells the fault; false:
 * there is none. */
bool tps_callback_lose(tps_context *context, uint64_t *token, tps_error *err);
/* True when something is due, and no device has told of a fault since the last look.
 */
bool tps_callback_ready(tps_context *context);
/* Asks the devices about streams with callbacks that are not due, so that a fault is
 * noticed by those who only poll. */
void tps_callback_look(tps_context *context);

/* The context's end: nothing will be due any more. */
void tps_callback_end(tps_context *context);

/* ---- sleeping until something is due ------------------------------------- */

/* Waits until a callback is due or a device has faulted: 0 then or when the time
 * is over, INTERRUPTED. */
int tps_wakeup_wait(tps_context *context, uint64_t timeout_ns, tps_error *err);
/* A descriptor for poll(2), the context's own: readable while a callback is due,
 * and from the time on that tps_wakeup_arm has set. With callbacks queued on a
 * GPU, whose faults nobody tells of, also every TPS_WAKEUP_LOOK_NS. */
int tps_wakeup_fd(tps_context *context, int *fd, tps_error *err);
/* In so many nanoseconds (TPS_FOREVER: not at all); nothing without a
 * tps_wakeup_fd. */
void tps_wakeup_arm(tps_context *context, uint64_t ns);
#define TPS_WAKEUP_LOOK_NS 100000000u

#endif
