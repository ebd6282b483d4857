// What callers get wrong: null pointers, freed objects, sizes that make no sense, names that nothing has. Every
// function says so with a fault, or gives nothing; none crashes.
#include <stdint.h>
#include <string.h>

#include "capi/apl.h"
#include "tests/capi/want.h"

#define REFUSED(call) WANT((call) == APL_FAULT_COMMAND_LINE)

static const char* const kSource =
    "entry twice (xs: []f32) = map (* 2) xs\n"
    "#[sparse(A)]\n"
    "entry spmv [n][m] (A: [n][m]f32) (x: [m]f32) : [n]f32 = map (\\a -> f32.sum (map2 (*) a x)) A\n";

static apl_fault nothing(void* user, apl_module* module, apl_pass_context* context) {
  (void)user, (void)module;
  // A remark without anything, options and texts that are none.
  apl_remark remark = {.kind = (apl_remark_kind)7, .fact_count = 2};
  apl_pass_remark(context, &remark);
  apl_pass_remark(context, NULL);
  apl_pass_remark(NULL, &remark);
  WANT(apl_pass_option(context, NULL) == NULL && apl_pass_option(NULL, "x") == NULL);
  REFUSED(apl_pass_replace(NULL, module, "", 0));
  REFUSED(apl_pass_fail(NULL, "x"));
  REFUSED(apl_pass_replace(context, NULL, "", 0));
  return apl_pass_replace(context, module, NULL, 5);
}

static apl_fault fail_silently(void* user, apl_module* module, apl_pass_context* context) {
  (void)user, (void)module;
  return apl_pass_fail(context, NULL);
}

static void null_compilers(void) {
  apl_module* module = NULL;
  apl_program* program = NULL;
  apl_pass pass = {.size = sizeof pass};
  char* text = NULL;
  apl_compiler_free(NULL);
  WANT(apl_compiler_error_count(NULL) == 0 && apl_compiler_error(NULL, 0) == NULL);
  WANT(strcmp(apl_compiler_error_text(NULL), "") == 0);
  apl_compiler_on_remark(NULL, NULL, NULL);
  REFUSED(apl_compiler_set(NULL, "seed", "1"));
  REFUSED(apl_compiler_set_parameter(NULL, "n", 1));
  REFUSED(apl_compiler_set_size(NULL, "n", 1));
  REFUSED(apl_compiler_add_pass(NULL, &pass));
  REFUSED(apl_compiler_insert(NULL, "start:fuse"));
  REFUSED(apl_compiler_load_plugin(NULL, "x.so"));
  WANT(apl_compiler_pass_count(NULL) == 0 && !apl_compiler_pass_name(NULL, 0) && !apl_compiler_pass_summary(NULL, 0));
  REFUSED(apl_parse_source(NULL, "x", "", 0, &module));
  REFUSED(apl_parse_ir(NULL, "x", "", 0, &module));
  REFUSED(apl_module_copy(NULL, NULL, &module));
  REFUSED(apl_module_print(NULL, NULL, 0, &text));
  REFUSED(apl_module_replace(NULL, NULL, "", 0));
  REFUSED(apl_module_verify(NULL, NULL));
  REFUSED(apl_module_walk(NULL, NULL, NULL, NULL));
  REFUSED(apl_run_pipeline(NULL, NULL, "fuse"));
  REFUSED(apl_standard_pipeline(NULL, "c", "soac", &text));
  REFUSED(apl_emit_program(NULL, NULL, "c", &text));
  REFUSED(apl_emit_kernel(NULL, NULL, "cuda", NULL, &text));
  REFUSED(apl_emit_library(NULL, NULL, "c", "x", &text, &text, &text));
  REFUSED(apl_explain(NULL, NULL, &text));
  REFUSED(apl_report(NULL, NULL, &text));
  REFUSED(apl_program_load(NULL, NULL, "c", &program));
  REFUSED(apl_interpret(NULL, NULL, "main", NULL, 0, NULL, 0, NULL));
  REFUSED(apl_sparse_search(NULL, NULL, "spmm", 1, "cpu", 0, &text));
  WANT(module == NULL && program == NULL && text == NULL);
  apl_text_free(NULL);
}

static void null_objects(void) {
  apl_matrix* matrix = NULL;
  apl_module_free(NULL);
  WANT(strcmp(apl_module_stage(NULL), "") == 0 && apl_module_entry_count(NULL) == 0 && !apl_module_entry(NULL, 0));
  apl_program_free(NULL);
  WANT(apl_program_error_count(NULL) == 0 && !apl_program_error(NULL, 0) && apl_program_entry_count(NULL) == 0);
  WANT(strcmp(apl_program_error_text(NULL), "") == 0 && !apl_program_entry(NULL, 0));
  REFUSED(apl_program_call(NULL, "main", NULL, 0, 1, NULL, 0, NULL));
  REFUSED(apl_program_wait(NULL));
  REFUSED(apl_program_set_stream(NULL, NULL));
  REFUSED(apl_program_set_plan(NULL, "A", NULL));
  REFUSED(apl_program_matrix(NULL, "main", "A", NULL, &matrix));
  WANT(apl_program_microseconds(NULL) == 0);
  apl_array_free(NULL);
  WANT(apl_array_rank(NULL) == 0 && !apl_array_shape(NULL) && !apl_array_data(NULL) && apl_array_bytes(NULL) == 0);
  WANT(apl_array_type(NULL) == APL_TYPE_UNIT && apl_array_on_device(NULL) == 0);
  REFUSED(apl_array_read(NULL, NULL));
  apl_matrix_free(NULL);
}

// What is missing is named.
static void missing(apl_compiler* compiler, const char* argument) {
  char text[64];
  (void)snprintf(text, sizeof text, "`%s` is null", argument);
  WANT(apl_compiler_error_count(compiler) == 1 && strstr(apl_compiler_error_text(compiler), text));
}

static void null_arguments(apl_compiler* compiler, apl_module* module) {
  apl_module* made = NULL;
  apl_program* program = NULL;
  char* text = NULL;
  REFUSED(apl_compiler_set(compiler, NULL, "1"));
  missing(compiler, "name");
  REFUSED(apl_compiler_set(compiler, "seed", NULL));
  missing(compiler, "value");
  REFUSED(apl_compiler_set_parameter(compiler, NULL, 1));
  REFUSED(apl_compiler_set_size(compiler, NULL, 1));
  REFUSED(apl_compiler_add_pass(compiler, NULL));
  REFUSED(apl_compiler_insert(compiler, NULL));
  REFUSED(apl_compiler_load_plugin(compiler, NULL));
  REFUSED(apl_parse_source(compiler, NULL, "", 0, &made));
  REFUSED(apl_parse_source(compiler, "x.fut", NULL, 3, &made));
  missing(compiler, "text");
  REFUSED(apl_parse_source(compiler, "x.fut", "", 0, NULL));
  REFUSED(apl_parse_source(compiler, "x.fut", "entry", SIZE_MAX, &made));
  REFUSED(apl_parse_ir(compiler, "x.aplir", NULL, 3, &made));
  REFUSED(apl_parse_ir(compiler, "x.aplir", "stage", SIZE_MAX / 2 + 1, &made));
  REFUSED(apl_module_copy(compiler, NULL, &made));
  WANT(strstr(apl_compiler_error_text(compiler), "`module` is null, was freed or is no such object"));
  REFUSED(apl_module_copy(compiler, module, NULL));
  REFUSED(apl_module_print(compiler, NULL, 0, &text));
  REFUSED(apl_module_print(compiler, module, 0, NULL));
  REFUSED(apl_module_replace(compiler, NULL, "", 0));
  REFUSED(apl_module_replace(compiler, module, NULL, 1));
  WANT(apl_module_replace(compiler, module, NULL, 0) == APL_FAULT_PROGRAM);
  REFUSED(apl_module_verify(compiler, NULL));
  REFUSED(apl_module_walk(compiler, module, NULL, NULL));
  REFUSED(apl_run_pipeline(compiler, NULL, "fuse"));
  REFUSED(apl_run_pipeline(compiler, module, NULL));
  REFUSED(apl_standard_pipeline(compiler, NULL, "soac", &text));
  REFUSED(apl_standard_pipeline(compiler, "c", NULL, &text));
  REFUSED(apl_standard_pipeline(compiler, "c", "soac", NULL));
  REFUSED(apl_emit_program(compiler, NULL, "c", &text));
  REFUSED(apl_emit_program(compiler, module, NULL, &text));
  REFUSED(apl_emit_program(compiler, module, "c", NULL));
  REFUSED(apl_emit_kernel(compiler, module, NULL, "twice", &text));
  REFUSED(apl_emit_kernel(compiler, module, "c", "twice", &text));
  REFUSED(apl_emit_kernel(compiler, module, "cuda", "none", &text));
  REFUSED(apl_emit_library(compiler, module, "c", NULL, &text, &text, &text));
  REFUSED(apl_emit_library(compiler, module, "c", "x", &text, NULL, &text));
  REFUSED(apl_emit_library(compiler, module, "c", "", &text, &text, &text));
  REFUSED(apl_explain(compiler, module, NULL));
  REFUSED(apl_report(compiler, NULL, &text));
  REFUSED(apl_program_load(compiler, module, NULL, &program));
  REFUSED(apl_program_load(compiler, module, "c", NULL));
  REFUSED(apl_interpret(compiler, module, NULL, NULL, 0, NULL, 0, NULL));
  REFUSED(apl_interpret(compiler, module, "none", NULL, 0, NULL, 0, NULL));
  REFUSED(apl_interpret(compiler, module, "twice", NULL, 1, NULL, 0, NULL));
  REFUSED(apl_interpret(compiler, module, "twice", NULL, 0, NULL, 1, NULL));
  WANT(apl_interpret(compiler, module, "twice", NULL, 0, NULL, 0, NULL) == APL_FAULT_PROGRAM);
  WANT(made == NULL && program == NULL && text == NULL);
  // Names that no line of C can include: the header's text stands in the source.
  const char* const names[] = {"x\"y", "x\ny"};
  for (size_t k = 0; k < sizeof names / sizeof *names; ++k) {
    char *header = NULL, *manifest = NULL;
    WANT(apl_emit_library(compiler, module, "c", names[k], &text, &header, &manifest) == APL_FINE);
    WANT(!strstr(text, "#include \"x") && !strstr(text, "\ny.c"));
    apl_text_free(text), apl_text_free(header), apl_text_free(manifest);
    text = NULL;
  }
}

static int replace_it(void* user, const apl_statement* statement) {
  apl_module* module = ((void**)user)[0];
  apl_compiler* other = ((void**)user)[1];
  static const char text[] = "entry other (x: i32) = x";
  apl_module* made = NULL;
  char* printed = NULL;
  WANT(apl_parse_source(other, "x.fut", text, sizeof text - 1, &made) == APL_FINE);
  WANT(apl_module_print(other, made, 0, &printed) == APL_FINE);
  WANT(apl_module_replace(other, module, printed, strlen(printed)) == APL_FINE);
  apl_text_free(printed);
  apl_module_free(made);
  WANT(strlen(statement->text) > 0);
  return 0;
}

static void passes(apl_compiler* compiler, apl_compiler* other, apl_module* module) {
  apl_pass pass = {.size = sizeof pass, .name = "nothing"};
  REFUSED(apl_compiler_add_pass(compiler, &pass));  // it does nothing
  pass.run = nothing;
  pass.option_count = 1;
  REFUSED(apl_compiler_add_pass(compiler, &pass));  // options without names
  const char* names[] = {NULL};
  pass.option_names = pass.option_defaults = names;
  REFUSED(apl_compiler_add_pass(compiler, &pass));
  pass.option_count = 0;
  pass.stages = "soac attic";
  REFUSED(apl_compiler_add_pass(compiler, &pass));
  pass.stages = "soac";
  WANT(apl_compiler_add_pass(compiler, &pass) == APL_FINE);
  REFUSED(apl_compiler_add_pass(compiler, &pass));  // twice
  REFUSED(apl_run_pipeline(compiler, module, "nothing"));
  WANT(strstr(apl_compiler_error_text(compiler), "`text` is null"));
  pass.name = "silent";
  pass.run = fail_silently;
  WANT(apl_compiler_add_pass(compiler, &pass) == APL_FINE);
  REFUSED(apl_run_pipeline(compiler, module, "silent"));
  WANT(strstr(apl_compiler_error_text(compiler), "did not say why"));
  // A module that another one replaces while it is walked.
  apl_module* walked = NULL;
  WANT(apl_module_copy(compiler, module, &walked) == APL_FINE);
  void* both[] = {walked, other};
  WANT(apl_module_walk(compiler, walked, replace_it, both) == APL_FINE);
  WANT(strcmp(apl_module_entry(walked, 0)->name, "other") == 0);
  apl_module_free(walked);
}

static void settings(apl_compiler* compiler) {
  // What is refused changes nothing: the program below still loads, with the device and passes of before.
  REFUSED(apl_compiler_set(compiler, "cuda-device", "-1"));
  REFUSED(apl_compiler_set(compiler, "cuda-device", "99999999999999999999"));
  REFUSED(apl_compiler_set(compiler, "seed", "12x"));
  REFUSED(apl_compiler_set(compiler, "seed", ""));
  REFUSED(apl_compiler_set(compiler, "disable", "fuse,no-such-pass"));
  REFUSED(apl_compiler_set(compiler, "verify", "perhaps"));
  REFUSED(apl_compiler_set(compiler, "", ""));
  WANT(strstr(apl_compiler_error_text(compiler), "cuda-folders"));
  REFUSED(apl_compiler_insert(compiler, ""));
}

static void calls(apl_compiler* compiler, apl_module* module, const char* backend) {
  apl_program *program = NULL, *second = NULL;
  WANT(apl_program_load(compiler, module, backend, &program) == APL_FINE);
  WANT(apl_program_load(compiler, module, backend, &second) == APL_FINE);
  const float data[] = {1, 2, 3, 4};
  const int64_t four[] = {4}, less[] = {-4}, most[] = {INT64_MAX}, many[] = {INT64_MAX, INT64_MAX}, two[] = {2, 2};
  apl_input fine = {.size = sizeof fine, .type = APL_TYPE_F32, .rank = 1, .shape = four, .data = data}, input = fine;
  apl_array* result = NULL;
  size_t count = 7;
  REFUSED(apl_program_call(program, NULL, &fine, 1, 1, &result, 1, &count));
  REFUSED(apl_program_call(program, "", &fine, 1, 1, &result, 1, &count));
  REFUSED(apl_program_call(program, "twice\n", &fine, 1, 1, &result, 1, &count));
  REFUSED(apl_program_call(program, "twice", NULL, 1, 1, &result, 1, &count));
  REFUSED(apl_program_call(program, "twice", &fine, 1, 1, NULL, 1, &count));
  WANT(apl_program_call(program, "twice", &fine, 0, 1, &result, 1, &count) == APL_FAULT_PROGRAM);
  input.size = 1;
  REFUSED(apl_program_call(program, "twice", &input, 1, 1, &result, 1, &count));
  input = fine, input.data = NULL;
  REFUSED(apl_program_call(program, "twice", &input, 1, 1, &result, 1, &count));
  input = fine, input.shape = NULL;
  REFUSED(apl_program_call(program, "twice", &input, 1, 1, &result, 1, &count));
  input = fine, input.rank = SIZE_MAX;
  REFUSED(apl_program_call(program, "twice", &input, 1, 1, &result, 1, &count));
  input = fine, input.type = (apl_scalar_type)99;
  REFUSED(apl_program_call(program, "twice", &input, 1, 1, &result, 1, &count));
  input = fine, input.type = (apl_scalar_type)-1;
  REFUSED(apl_program_call(program, "twice", &input, 1, 1, &result, 1, &count));
  input = fine, input.shape = less;
  REFUSED(apl_program_call(program, "twice", &input, 1, 1, &result, 1, &count));
  input = fine, input.shape = most;
  REFUSED(apl_program_call(program, "twice", &input, 1, 1, &result, 1, &count));
  input = fine, input.rank = 2, input.shape = many;
  REFUSED(apl_program_call(program, "twice", &input, 1, 1, &result, 1, &count));
  input = fine, input.rank = 2, input.shape = two;
  WANT(apl_program_call(program, "twice", &input, 1, 1, &result, 1, &count) == APL_FAULT_PROGRAM);
  input = fine, input.on_device = 1;
  WANT(apl_program_call(program, "twice", &input, 1, 1, &result, 1, &count) == APL_FAULT_PROGRAM);
  WANT(result == NULL && count == 7);
  // Nobody wants the result, or its number.
  WANT(apl_program_call(program, "twice", &fine, 1, 1, NULL, 0, &count) == APL_FINE && count == 1);
  WANT(apl_program_call(program, "twice", &fine, 1, 1, &result, 1, NULL) == APL_FINE);
  float got[4] = {0};
  REFUSED(apl_array_read(result, NULL));
  WANT(apl_array_read(result, got) == APL_FINE && got[3] == 8);
  // No elements, and no data.
  const int64_t none[] = {0};
  apl_array* empty = NULL;
  input = fine, input.shape = none, input.data = NULL;
  WANT(apl_program_call(program, "twice", &input, 1, 1, &empty, 1, &count) == APL_FINE);
  WANT(apl_array_shape(empty)[0] == 0 && apl_array_bytes(empty) == 0 && apl_array_read(empty, NULL) == APL_FINE);
  apl_array_free(empty);
  // Waiting when there is nothing to wait for, and again.
  WANT(apl_program_wait(program) == APL_FINE && apl_program_wait(program) == APL_FINE);

  const int64_t starts[] = {0, 1, 2}, falling[] = {0, 2, 1}, behind[] = {1, 1, 2}, below[] = {0, -1, -1};
  const int32_t columns[] = {1, 0}, outside[] = {1, 9}, negative[] = {-1, 0};
  const apl_csr matrix = {sizeof matrix, 2, 2, starts, columns, APL_TYPE_F32, data};
  apl_csr csr = matrix;
  apl_matrix* made = NULL;
  char* plan = NULL;
  REFUSED(apl_program_matrix(program, "spmv", "A", NULL, &made));
  REFUSED(apl_program_matrix(program, "spmv", NULL, &csr, &made));
  REFUSED(apl_program_matrix(program, "spmv", "A", &csr, NULL));
  WANT(apl_program_matrix(program, "none", "A", &csr, &made) != APL_FINE);
  WANT(apl_program_matrix(program, "twice", "A", &csr, &made) == APL_FAULT_PROGRAM);
  csr.size = 0;
  REFUSED(apl_program_matrix(program, "spmv", "A", &csr, &made));
  csr = matrix, csr.row_start = NULL;
  REFUSED(apl_program_matrix(program, "spmv", "A", &csr, &made));
  csr = matrix, csr.values = NULL;
  REFUSED(apl_program_matrix(program, "spmv", "A", &csr, &made));
  csr = matrix, csr.column = NULL;
  REFUSED(apl_program_matrix(program, "spmv", "A", &csr, &made));
  csr = matrix, csr.rows = -1;
  REFUSED(apl_program_matrix(program, "spmv", "A", &csr, &made));
  csr = matrix, csr.rows = INT64_MAX;
  REFUSED(apl_program_matrix(program, "spmv", "A", &csr, &made));
  csr = matrix, csr.type = APL_TYPE_UNIT;
  REFUSED(apl_program_matrix(program, "spmv", "A", &csr, &made));
  csr = matrix, csr.type = APL_TYPE_F64, csr.values = (const double[]){1, 2};
  WANT(apl_program_matrix(program, "spmv", "A", &csr, &made) == APL_FAULT_PROGRAM);
  csr = matrix, csr.row_start = falling;
  REFUSED(apl_program_matrix(program, "spmv", "A", &csr, &made));
  csr = matrix, csr.row_start = below;
  REFUSED(apl_program_matrix(program, "spmv", "A", &csr, &made));
  csr = matrix, csr.row_start = behind;
  WANT(apl_program_matrix(program, "spmv", "A", &csr, &made) == APL_FAULT_PROGRAM);
  csr = matrix, csr.column = outside;
  WANT(apl_program_matrix(program, "spmv", "A", &csr, &made) == APL_FAULT_PROGRAM);
  csr = matrix, csr.column = negative;
  WANT(apl_program_matrix(program, "spmv", "A", &csr, &made) == APL_FAULT_PROGRAM);
  WANT(apl_sparse_search(compiler, &csr, "spmm", 8, "cpu", 1, &plan) == APL_FAULT_PROGRAM);
  csr = matrix, csr.columns = INT64_MAX;
  (void)apl_sparse_search(compiler, &csr, "spmm", 8, "cpu", 1, &plan);
  apl_text_free(plan), plan = NULL;
  REFUSED(apl_sparse_search(compiler, &matrix, "product", 8, "cpu", 1, &plan));
  REFUSED(apl_sparse_search(compiler, &matrix, NULL, 8, "cpu", 1, &plan));
  REFUSED(apl_sparse_search(compiler, &matrix, "spmm", INT64_MAX, "cpu", 1, &plan));
  REFUSED(apl_sparse_search(compiler, &matrix, "spmm", 8, "abacus", 1, &plan));
  REFUSED(apl_sparse_search(compiler, &matrix, "spmm", 8, "cpu", -1, &plan));
  REFUSED(apl_sparse_search(compiler, &matrix, "spmm", 8, "cpu", 1, NULL));
  REFUSED(apl_program_set_plan(program, NULL, "x"));
  WANT(apl_program_set_plan(program, "A", NULL) == APL_FINE && apl_program_set_plan(program, "A", NULL) == APL_FINE);
  WANT(made == NULL && plan == NULL);
  // A matrix of another program.
  WANT(apl_program_matrix(second, "spmv", "A", &matrix, &made) == APL_FINE);
  apl_input both[] = {{.size = sizeof fine, .matrix = made}, fine};
  both[1].shape = two;
  WANT(apl_program_call(program, "spmv", both, 2, 1, NULL, 0, &count) == APL_FAULT_PROGRAM);
  WANT(apl_program_call(program, "twice", both, 1, 1, NULL, 0, &count) == APL_FAULT_PROGRAM);
  WANT(apl_program_call(second, "spmv", both, 2, 1, NULL, 0, &count) == APL_FINE);
  // One that outlives its program.
  apl_program_free(second);
  WANT(apl_program_call(program, "spmv", both, 2, 1, NULL, 0, &count) == APL_FAULT_PROGRAM);
  apl_matrix_free(made);
  apl_program_free(program);
  WANT(apl_array_read(result, got) == APL_FINE && got[0] == 2);
  apl_array_free(result);
}

// Freed objects are known as long as nothing else has their memory. Sanitizers stop at any use of it.
static void freed(apl_compiler* compiler, apl_module* module) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  apl_compiler* gone = apl_compiler_new();
  apl_module* copy = NULL;
  apl_program* program = NULL;
  WANT(apl_module_copy(compiler, module, &copy) == APL_FINE);
  WANT(apl_program_load(compiler, module, "c", &program) == APL_FINE);
  apl_compiler_free(gone);
  apl_compiler_free(gone);
  REFUSED(apl_compiler_set(gone, "seed", "1"));
  apl_module_free(copy);
  apl_module_free(copy);
  REFUSED(apl_module_verify(compiler, copy));
  apl_program_free(program);
  apl_program_free(program);
  REFUSED(apl_program_wait(program));
#endif
  // Objects of another kind.
  REFUSED(apl_module_verify(compiler, (apl_module*)compiler));
  REFUSED(apl_module_verify((apl_compiler*)module, module));
  apl_module_free((apl_module*)compiler);
  WANT(apl_module_verify(compiler, module) == APL_FINE);
}

int main(void) {
  null_compilers();
  null_objects();
  apl_compiler *compiler = apl_compiler_new(), *other = apl_compiler_new();
  apl_module* module = NULL;
  WANT(compiler && other);
  WANT(apl_parse_source(compiler, "x.fut", kSource, strlen(kSource), &module) == APL_FINE);
  null_arguments(compiler, module);
  settings(compiler);
  calls(compiler, module, "c");
  calls(compiler, module, "emulate");
  passes(compiler, other, module);
  freed(compiler, module);
  apl_module_free(module);
  apl_compiler_free(other);
  apl_compiler_free(compiler);
  puts("the C API, misused: fine");
  return 0;
}
