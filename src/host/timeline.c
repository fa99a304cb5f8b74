/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * --timeline: all that the script queues is recorded, in whatever Lua state, and
 * written at its end, also after an error or os.exit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "host/host.h"
#include "lua/api.h"
#include "timeline/timeline.h"

#define COLUMNS 80 /* where neither the environment nor the terminal tells */

static tps_timeline *recorded; /* NULL: none, or written */

bool host_timeline_begin(const host_options *options) {
  tps_error err;
  if (!options->timeline) return true;
  const char *path = options->timeline_file;
  if (path == NULL || tps_timeline_can_write(path, &err))
    recorded = tps_timeline_start(0, TPS_TIMELINE_LIMIT, &err);
  if (recorded == NULL) host_message(options->program, err.message);
  return recorded != NULL;
}

static int columns(void) {
  const char *said = getenv("COLUMNS");
  long number = said != NULL ? strtol(said, NULL, 10) : 0;
  struct winsize size;
  if (number > 0 && number < 10000) return (int)number;
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return size.ws_col;
  return COLUMNS;
}

static bool write_file(const tps_timeline *timeline,
                       const host_options *options) {
  tps_error err;
  const char *path = options->timeline_file;
  if (tps_timeline_write(timeline, path, &err) == 0) return true;
  host_message(options->program, err.message);
  return false;
}

/* At once: standard error has no buffer. */
static bool draw(const tps_timeline *timeline, const host_options *options) {
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  bool room = out != NULL && tps_timeline_chart(timeline, out, columns());
  if (out != NULL && fclose(out) != 0) room = false;
  if (room) fwrite(text, 1, size, stderr);
  else host_message(options->program, "not enough memory for the timeline");
  free(text);
  return room;
}

bool host_timeline_end(lua_State *L, const host_options *options) {
  tps_timeline *timeline = recorded;
  bool fine;
  if (timeline == NULL) return true;
  recorded = NULL;
  if (!host_was_interrupted()) host_wait(L);
  tps_timeline_stop(timeline);
  fflush(stdout);
  if (!host_has_run()) fine = true;
  else if (options->timeline_file != NULL) fine = write_file(timeline, options);
  else fine = draw(timeline, options);
  tps_timeline_free(timeline);
  return fine;
}
