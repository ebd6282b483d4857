// 8 threads compile 100 programs each, at the same time, each with a compiler of its own. Which are loaded and called,
// and that two threads use one program at a time, is here, too: under a thread sanitizer this must be clean.
#include <pthread.h>
#include <string.h>

#include "capi/apl.h"
#include "tests/capi/want.h"

enum { kThreads = 8, kCompiles = 100 };
static apl_program* shared;

static void* compile(void* argument) {
  const int thread = (int)(intptr_t)argument;
  apl_compiler* compiler = apl_compiler_new();
  WANT(compiler);
  for (int k = 0; k < kCompiles; ++k) {
    char source[300];
    snprintf(source, sizeof source,
             "entry main [n][m] (A: [n][m]f32) (B: [m][n]f32) =\n"
             "  map (\\a -> map (\\b -> f32.sum (map2 (*) a b) + %d) (transpose B)) A\n",
             thread * kCompiles + k);
    apl_module* module = NULL;
    WANT(apl_parse_source(compiler, "t.fut", source, strlen(source), &module) == APL_FINE);
    char* text = NULL;
    WANT(apl_emit_program(compiler, module, k % 2 ? "c" : "cuda", &text) == APL_FINE);
    char number[30];
    snprintf(number, sizeof number, "%d.0f", thread * kCompiles + k);
    WANT(strstr(text, number));
    apl_text_free(text);
    apl_module_free(module);

    const int64_t n = 3, xs[] = {1, 2, k};
    apl_input input = {.size = sizeof input, .type = APL_TYPE_I64, .rank = 1, .shape = &n, .data = xs};
    apl_array* result = NULL;
    size_t count = 0;
    WANT(apl_program_call(shared, "sum", &input, 1, 1, &result, 1, &count) == APL_FINE);
    WANT(*(const int64_t*)apl_array_data(result) == 3 + k);
    apl_array_free(result);
  }
  apl_compiler_free(compiler);
  return NULL;
}

int main(void) {
  apl_compiler* compiler = apl_compiler_new();
  apl_module* module = NULL;
  const char* text = "entry sum (xs: []i64) : i64 = loop s = 0 for i < length xs do s + xs[i]";
  WANT(compiler && apl_parse_source(compiler, "sum.fut", text, strlen(text), &module) == APL_FINE);
  // One thread in OpenMP: its own synchronisation is nothing that a sanitizer knows.
  if (apl_program_load(compiler, module, "c", &shared) != APL_FINE) fputs(apl_compiler_error_text(compiler), stderr);
  WANT(shared);
  pthread_t threads[kThreads];
  for (intptr_t k = 0; k < kThreads; ++k) WANT(pthread_create(&threads[k], NULL, compile, (void*)k) == 0);
  for (int k = 0; k < kThreads; ++k) pthread_join(threads[k], NULL);
  apl_program_free(shared);
  apl_module_free(module);
  apl_compiler_free(compiler);
  printf("%d compiles in %d threads: fine\n", kThreads * kCompiles, kThreads);
  return 0;
}
