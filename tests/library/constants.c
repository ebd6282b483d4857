// Constants of a library's contexts. Prints nothing if all is as it should be.
#include <stdint.h>

#ifdef FAILS
#include "failing.h"
#else
#include "constants.h"
#endif
#include "want.h"

#ifdef FAILS

// A context is there all the same: it says what failed, and is freed as any other.
static void check(void) {
  int64_t y = 0;
  WANT(error_has("Index [100] out of bounds for array of shape [100].\n\nBacktrace:\n-> #0  failing.fut:4:"));
  WANT(futhark_context_get_error(ctx) == NULL);
  WANT(futhark_entry_twice(ctx, &y, 21) == 0 && futhark_context_sync(ctx) == 0 && y == 42);
  WANT(futhark_entry_at(ctx, &y, 0) == FUTHARK_PROGRAM_ERROR && error_has("failing.fut:4:"));
  WANT(futhark_entry_last(ctx, &y) == FUTHARK_PROGRAM_ERROR && error_has("failing.fut:8:"));
  WANT(futhark_entry_twice(ctx, &y, 4) == 0 && futhark_context_sync(ctx) == 0 && y == 8);
}

#else

// How often the word is there.
static int count(const char* text, const char* word) {
  int found = 0;
  for (; (text = strstr(text, word)) != NULL; ++text) ++found;
  return found;
}

// Launches of kernels and calls of entries that were reported.
static int events(const char* kind) {
  char* report = futhark_context_report(ctx);
  const int found = report ? count(report, kind) : -1;
  free(report);
  return found;
}

static void check(void) {
  int64_t y = 0;
  char* error = futhark_context_get_error(ctx);
  WANT(error == NULL);
  const int before = events("\"kernel\"");
  for (int64_t k = 0; k < 4; ++k)
    WANT(futhark_entry_at(ctx, &y, 90 + k) == 0 && futhark_context_sync(ctx) == 0 && y == (90 + k) * (90 + k));
  // An element of a table is read, and no kernel makes it.
  WANT(events("\"kernel\"") == before && events("\"call\"") == 4);
  WANT(futhark_entry_at(ctx, &y, 100) != 0 && error_has("constants.fut:6:"));
  for (int64_t k = 0; k < 2; ++k)
    WANT(futhark_entry_sum(ctx, &y, k) == 0 && futhark_context_sync(ctx) == 0 && y == 161700 + k);
  // Memory that is kept for later calls goes; constants do not.
  WANT(futhark_context_clear_caches(ctx) == 0);
  WANT(futhark_entry_at(ctx, &y, 99) == 0 && y == 9801);
  WANT(futhark_entry_twice(ctx, &y, 3) == 0 && y == 6);
}

#endif

int main(void) {
  // Each context has constants of its own.
  for (int round = 0; round < 2; ++round) {
    struct futhark_context_config* cfg = futhark_context_config_new();
    futhark_context_config_set_profiling(cfg, 1);
    ctx = futhark_context_new(cfg);
    WANT(ctx != NULL);
    check();
    futhark_context_free(ctx);
    futhark_context_config_free(cfg);
  }
  return wrong != 0;
}
