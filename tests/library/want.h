// How a test of a generated library says what does not hold. Included after the library's header.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct futhark_context* ctx;
static int wrong = 0;

#define WANT(condition)                                                               \
  do {                                                                                \
    if (!(condition)) {                                                               \
      ++wrong;                                                                        \
      char* error = futhark_context_get_error(ctx);                                   \
      printf("line %d: %s (%s)\n", __LINE__, #condition, error ? error : "no error"); \
      free(error);                                                                    \
    }                                                                                 \
  } while (0)

static int error_has(const char* words) {
  char* error = futhark_context_get_error(ctx);
  const int found = error != NULL && strstr(error, words) != NULL;
  if (!found) printf("the error is: %s\n", error ? error : "none");
  free(error);
  return found;
}
