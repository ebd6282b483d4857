/* A product of matrices that is compiled when this program runs:
 *
 *     cc main.c -lapl -o c-api && ./c-api
 */
#include <apl/apl.h>
#include <stdio.h>
#include <string.h>

static const char kSource[] =
    "entry mm [n][m][k] (A: [n][m]f32) (B: [m][k]f32) : [n][k]f32 =\n"
    "  map (\\a -> map (\\b -> f32.sum (map2 (*) a b)) (transpose B)) A\n";

static void show(void* user, const apl_remark* remark) {
  (void)user;
  if (remark->kind == APL_REMARK_APPLIED)
    printf("line %u: %s: %s\n", remark->place.line, remark->pass, remark->message);
}

int main(void) {
  apl_compiler* compiler = apl_compiler_new();
  if (!compiler) return 1;
  apl_compiler_on_remark(compiler, show, NULL);
  apl_module* module = NULL;
  apl_program* program = NULL;
  if (apl_parse_source(compiler, "mm.fut", kSource, strlen(kSource), &module) != APL_FINE ||
      apl_program_load(compiler, module, "c", &program) != APL_FINE) {
    fputs(apl_compiler_error_text(compiler), stderr);
    return 1;
  }
  const float a[2][3] = {{1, 2, 3}, {4, 5, 6}}, b[3][2] = {{1, 0}, {0, 1}, {1, 1}};
  const int64_t a_shape[] = {2, 3}, b_shape[] = {3, 2};
  const apl_input inputs[] = {
      {.size = sizeof(apl_input), .type = APL_TYPE_F32, .rank = 2, .shape = a_shape, .data = a},
      {.size = sizeof(apl_input), .type = APL_TYPE_F32, .rank = 2, .shape = b_shape, .data = b}};
  apl_array* product = NULL;
  size_t count = 0;
  if (apl_program_call(program, "mm", inputs, 2, 1, &product, 1, &count) != APL_FINE) {
    fputs(apl_program_error_text(program), stderr);
    return 1;
  }
  float c[4];
  apl_array_read(product, c);
  printf("%g %g\n%g %g\n", c[0], c[1], c[2], c[3]);
  apl_array_free(product);
  apl_program_free(program);
  apl_module_free(module);
  apl_compiler_free(compiler);
  return c[3] == 11 ? 0 : 1;
}
