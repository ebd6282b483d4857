// A check that says what failed, for C and C++.
#ifndef APL_TESTS_CAPI_WANT_H
#define APL_TESTS_CAPI_WANT_H

#include <stdio.h>
#include <stdlib.h>

#define WANT(condition)                                                         \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: %s is not so\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

#endif
