/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Warnings, on stderr. As in lua5.4 a script's own are shown after -W or "@on".
 * Two kinds are shown also before, since there is no other way to hear of them:
 * the error of a finalizer, and what the module warns of. "@off" ends both.
 */
#include <stdio.h>
#include <string.h>

#include "host/host.h"

typedef struct warnings {
  enum { QUIET, ON, OFF } level;
  bool begun; /* a message whose end is to come */
  bool shown; /* that one */
} warnings;

/* A message that is shown by itself, told by its first part. */
static bool is_urgent(const char *text, bool whole) {
  return (!whole && strcmp(text, "error in ") == 0) ||
         strncmp(text, "tpstream: ", 10) == 0;
}

/* While warnings are on only a whole message can be a command; else, as in
 * lua5.4, also the last part of one. */
static bool obey(warnings *state, const char *text, bool last) {
  if (!last || text[0] != '@' || (state->begun && state->level == ON))
    return false;
  if (strcmp(text, "@off") == 0) state->level = OFF;
  if (strcmp(text, "@on") == 0) state->level = ON;
  state->begun = false;
  return true;
}

static void warn(void *data, const char *text, int to_be_continued) {
  warnings *state = data;
  bool last = !to_be_continued;
  if (obey(state, text, last)) return;
  if (!state->begun) {
    state->shown =
        state->level == ON || (state->level == QUIET && is_urgent(text, last));
    if (state->shown) fputs("Lua warning: ", stderr);
  }
  if (state->shown) fprintf(stderr, "%s%s", text, last ? "\n" : "");
  state->begun = !last;
}

void host_open_warnings(lua_State *L) {
  static warnings state; /* one Lua state for a process */
  lua_setwarnf(L, warn, &state);
}
