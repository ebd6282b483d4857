// The C API from C: from a text to results, passes and remarks of our own, errors.
#include <stdint.h>
#include <string.h>

#include "capi/apl.h"
#include "tests/capi/want.h"

static const char* const kSource =
    "entry mm [n][m][k] (A: [n][m]f32) (B: [m][k]f32) : [n][k]f32 =\n"
    "  map (\\a -> map (\\b -> f32.sum (map2 (*) a b)) (transpose B)) A\n"
    "entry two (x: i64) (xs: []i64) = (x + 1, map (+ x) xs)\n"
    "entry same (xs: []f32) = xs\n"
    "entry third (xs: []f32) = xs[2]\n"
    "#[sparse(A)]\n"
    "entry spmm [n][m][k] (A: [n][m]f32) (B: [m][k]f32) : [n][k]f32 =\n"
    "  map (\\a -> map (\\b -> f32.sum (map2 (*) a b)) (transpose B)) A\n";

struct seen {
  int remarks, tiled, from_ours, statements, maps;
};

static void see(void* user, const apl_remark* remark) {
  struct seen* seen = user;
  ++seen->remarks;
  if (strcmp(remark->pass, "tile-contraction") == 0 && remark->kind == APL_REMARK_APPLIED) ++seen->tiled;
  if (strcmp(remark->pass, "count") == 0) {
    ++seen->from_ours;
    WANT(strcmp(remark->code, "counted") == 0 && remark->fact_count == 1);
    WANT(strcmp(remark->fact_names[0], "letters") == 0 && strcmp(remark->fact_values[0], "many") == 0);
  }
}

static int visit(void* user, const apl_statement* statement) {
  struct seen* seen = user;
  ++seen->statements;
  WANT(strlen(statement->text) > 0 && strlen(statement->function) > 0);
  if (strstr(statement->operation, "map") || strstr(statement->operation, "screma")) ++seen->maps;
  return seen->statements == 1000;
}

// A pass that replaces a constant in the module's text.
static apl_fault replace_one(void* user, apl_module* module, apl_pass_context* context) {
  apl_compiler* compiler = user;  // not the one that runs it
  const char* to = apl_pass_option(context, "to");
  WANT(apl_pass_option(context, "nothing") == NULL);
  if (strcmp(to, "fail") == 0) return apl_pass_fail(context, "asked to fail");
  char* text = NULL;
  WANT(apl_module_print(compiler, module, 0, &text) == APL_FINE);
  char* at = strstr(text, "size(x + 1)");
  if (at) at[9] = to[0];
  const apl_fault fault = apl_pass_replace(context, module, text, strlen(text));
  apl_text_free(text);
  const char *names[] = {"letters"}, *values[] = {"many"};
  apl_remark remark = {.kind = APL_REMARK_APPLIED, .code = "counted", .message = "it was counted"};
  remark.fact_count = 1;
  remark.fact_names = names;
  remark.fact_values = values;
  apl_pass_remark(context, &remark);
  return fault;
}

static apl_input array(apl_scalar_type type, size_t rank, const int64_t* shape, const void* data) {
  apl_input input = {.size = sizeof input, .type = type, .rank = rank, .shape = shape, .data = data};
  return input;
}

static apl_module* parse(apl_compiler* compiler, const char* text) {
  apl_module* module = NULL;
  if (apl_parse_source(compiler, "test.fut", text, strlen(text), &module) != APL_FINE)
    fputs(apl_compiler_error_text(compiler), stderr);
  WANT(module);
  return module;
}

static void errors(apl_compiler* compiler) {
  apl_module* module = NULL;
  const char* wrong = "entry f (x: i32) = x +\n  y\nentry g (x: i32) = z\n";
  WANT(apl_parse_source(compiler, "wrong.fut", wrong, strlen(wrong), &module) == APL_FAULT_PROGRAM);
  WANT(module == NULL && apl_compiler_error_count(compiler) == 2);
  const apl_diagnostic* error = apl_compiler_error(compiler, 0);
  WANT(strcmp(error->code, "type.unknown-name") == 0 && error->fault == APL_FAULT_PROGRAM);
  WANT(strcmp(error->place.file, "wrong.fut") == 0 && error->place.line == 2 && error->place.column == 3);
  WANT(strstr(apl_compiler_error_text(compiler), "wrong.fut:2:3: error: "));
  WANT(apl_compiler_error(compiler, 2) == NULL);
  WANT(apl_parse_ir(compiler, "wrong.aplir", "stage", 5, &module) == APL_FAULT_PROGRAM && module == NULL);
  WANT(strcmp(apl_compiler_error(compiler, 0)->code, "ir.syntax") == 0);
  WANT(apl_compiler_set(compiler, "colour", "red") == APL_FAULT_COMMAND_LINE);
  WANT(apl_compiler_set(compiler, "device", "abacus") == APL_FAULT_COMMAND_LINE);
  WANT(apl_compiler_set_parameter(compiler, "mm.T_a", -1) == APL_FAULT_COMMAND_LINE);
  WANT(apl_compiler_insert(compiler, "nowhere:fuse") == APL_FAULT_COMMAND_LINE);
  WANT(apl_compiler_load_plugin(compiler, "/there/is/none.so") == APL_FAULT_COMMAND_LINE);
  // What went well has no errors.
  WANT(apl_compiler_set(compiler, "seed", "7") == APL_FINE && apl_compiler_error_count(compiler) == 0);
}

static void modules(apl_compiler* compiler) {
  apl_module *module = parse(compiler, kSource), *copy = NULL, *again = NULL;
  WANT(strcmp(apl_module_stage(module), "soac") == 0 && apl_module_entry_count(module) == 5);
  const apl_entry_info* two = apl_module_entry(module, 1);
  WANT(strcmp(two->name, "two") == 0 && two->param_count == 2 && two->input_count == 2 && two->output_count == 2);
  WANT(strcmp(two->params[1].name, "xs") == 0 && two->inputs[1].rank == 1 && two->inputs[1].type == APL_TYPE_I64);
  WANT(two->outputs[0].rank == 0 && apl_module_entry(module, 5) == NULL);
  WANT(apl_module_entry(module, 4)->inputs[0].sparse == 1 && apl_module_entry(module, 4)->inputs[1].sparse == 0);

  char *text = NULL, *other = NULL;
  WANT(apl_module_copy(compiler, module, &copy) == APL_FINE);
  WANT(apl_module_print(compiler, module, 0, &text) == APL_FINE);
  WANT(apl_run_pipeline(compiler, copy, "inline,simplify") == APL_FINE);
  WANT(apl_run_pipeline(compiler, copy, "inline,no-such-pass") == APL_FAULT_COMMAND_LINE);
  WANT(apl_run_pipeline(compiler, copy, "kernel") == APL_FINE && strcmp(apl_module_stage(copy), "kernel") == 0);
  WANT(apl_module_print(compiler, module, 0, &other) == APL_FINE && strcmp(text, other) == 0);
  apl_text_free(other);
  WANT(apl_parse_ir(compiler, "copy.aplir", text, strlen(text), &again) == APL_FINE);
  WANT(apl_module_print(compiler, again, 0, &other) == APL_FINE && strcmp(text, other) == 0);
  apl_text_free(other);
  WANT(apl_module_verify(compiler, again) == APL_FINE);
  // A text that is no module leaves it as it was.
  WANT(apl_module_replace(compiler, again, "stage soac\nrubbish", 18) == APL_FAULT_PROGRAM);
  WANT(apl_module_print(compiler, again, 0, &other) == APL_FINE && strcmp(text, other) == 0);
  struct seen seen = {0};
  WANT(apl_module_walk(compiler, module, visit, &seen) == APL_FINE && seen.statements > 10 && seen.maps > 3);
  apl_text_free(other);
  apl_text_free(text);
  apl_module_free(again);
  apl_module_free(copy);
  apl_module_free(module);
  apl_module_free(NULL);
}

static void passes(apl_compiler* compiler, apl_compiler* other) {
  const char *names[] = {"to"}, *defaults[] = {"5"};
  apl_pass pass = {.size = sizeof pass, .name = "count", .summary = "for a test", .run = replace_one, .user = other};
  pass.option_count = 1;
  pass.option_names = names;
  pass.option_defaults = defaults;
  pass.stages = "soac";
  const size_t before = apl_compiler_pass_count(compiler);
  WANT(apl_compiler_add_pass(compiler, &pass) == APL_FINE && apl_compiler_pass_count(compiler) == before + 1);
  WANT(strcmp(apl_compiler_pass_name(compiler, before), "count") == 0);
  WANT(strcmp(apl_compiler_pass_summary(compiler, before), "for a test") == 0);
  WANT(apl_compiler_add_pass(compiler, &pass) == APL_FAULT_COMMAND_LINE);  // there is one of this name
  pass.size = 3;
  WANT(apl_compiler_add_pass(compiler, &pass) == APL_FAULT_COMMAND_LINE);

  struct seen seen = {0};
  apl_compiler_on_remark(compiler, see, &seen);
  apl_module* module = parse(compiler, "entry main (x: i64) = x + 1");
  WANT(apl_run_pipeline(compiler, module, "count{to=3}") == APL_FINE && seen.from_ours == 1);
  WANT(apl_run_pipeline(compiler, module, "count{to=fail}") != APL_FINE);
  char* text = NULL;
  WANT(apl_module_print(compiler, module, 0, &text) == APL_FINE && strstr(text, "size(x + 3)"));
  apl_text_free(text);
  const int64_t four = 4;
  apl_input input = array(APL_TYPE_I64, 0, NULL, &four);
  apl_array* result = NULL;
  size_t count = 0;
  WANT(apl_interpret(compiler, module, "main", &input, 1, &result, 1, &count) == APL_FINE && count == 1);
  WANT(*(const int64_t*)apl_array_data(result) == 7);
  apl_array_free(result);
  apl_module_free(module);

  // In the standard pipelines, too.
  WANT(apl_compiler_insert(compiler, "start:count{to=9}") == APL_FINE);
  char* pipeline = NULL;
  WANT(apl_standard_pipeline(compiler, "c", "memory", &pipeline) == APL_FINE);
  WANT(strstr(pipeline, "count{to=9},inline") == pipeline);
  apl_text_free(pipeline);
  module = parse(compiler, "entry main (x: i64) = x + 1");
  apl_program* program = NULL;
  WANT(apl_program_load(compiler, module, "c", &program) == APL_FINE);
  WANT(apl_program_call(program, "main", &input, 1, 1, &result, 1, &count) == APL_FINE);
  WANT(*(const int64_t*)apl_array_data(result) == 13);
  apl_array_free(result);
  apl_program_free(program);
  apl_module_free(module);
  apl_compiler_on_remark(compiler, NULL, NULL);
}

static void texts(apl_compiler* compiler) {
  struct seen seen = {0};
  apl_compiler_on_remark(compiler, see, &seen);
  apl_module* module = parse(compiler, kSource);
  char *text = NULL, *header = NULL, *manifest = NULL;
  WANT(apl_emit_program(compiler, module, "c", &text) == APL_FINE && strstr(text, "apl_entry_mm"));
  WANT(seen.tiled > 0);
  apl_text_free(text);
  WANT(apl_emit_program(compiler, module, "cuda", &text) == APL_FINE && strstr(text, "apl_kernel_text"));
  apl_text_free(text);
  WANT(apl_emit_program(compiler, module, "fortran", &text) == APL_FAULT_COMMAND_LINE);
  WANT(apl_compiler_set_size(compiler, "n", 64) == APL_FINE);
  WANT(apl_emit_kernel(compiler, module, "cuda", "mm", &text) == APL_FINE && strstr(text, "__global__"));
  apl_text_free(text);
  WANT(apl_emit_library(compiler, module, "c", "mm", &text, &header, &manifest) == APL_FINE);
  WANT(strstr(header, "futhark_entry_mm") && strstr(text, "futhark_entry_mm") && manifest[0] == '{');
  apl_text_free(text);
  apl_text_free(header);
  apl_text_free(manifest);
  WANT(apl_explain(compiler, module, &text) == APL_FINE && strstr(text, "mm on cpu") &&
       strstr(text, "packed for a micro-kernel"));
  apl_text_free(text);
  WANT(apl_report(compiler, module, &text) == APL_FINE && strstr(text, "<html") && strstr(text, "transpose"));
  apl_text_free(text);
  apl_module_free(module);
  apl_compiler_on_remark(compiler, NULL, NULL);
}

static void run(apl_compiler* compiler, const char* backend) {
  apl_module* module = parse(compiler, kSource);
  apl_program* program = NULL;
  if (apl_program_load(compiler, module, backend, &program) != APL_FINE)
    fputs(apl_compiler_error_text(compiler), stderr);
  WANT(program && apl_program_entry_count(program) == 5);
  const int64_t a_shape[] = {2, 3}, b_shape[] = {3, 2}, x_shape[] = {3};
  const float a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 0, 1, 1, 1};
  apl_input inputs[] = {array(APL_TYPE_F32, 2, a_shape, a), array(APL_TYPE_F32, 2, b_shape, b)};
  apl_array* results[2] = {NULL, NULL};
  size_t count = 0;
  WANT(apl_program_call(program, "mm", inputs, 2, 1, results, 2, &count) == APL_FINE && count == 1);
  const apl_array* product = results[0];
  WANT(apl_array_rank(product) == 2 && apl_array_shape(product)[1] == 2 && apl_array_type(product) == APL_TYPE_F32);
  const int on_device = strcmp(backend, "cuda") == 0;
  WANT(apl_array_bytes(product) == 16 && apl_array_on_device(product) == on_device);
  const float want[] = {4, 5, 10, 11};
  float got[4];
  WANT(apl_array_read(product, got) == APL_FINE && memcmp(got, want, sizeof want) == 0);
  WANT(apl_program_microseconds(program) > 0);
  // A result as an argument, while it stays the caller's.
  inputs[1] = array(APL_TYPE_F32, 2, apl_array_shape(product), apl_array_data(product));
  inputs[1].on_device = on_device;
  inputs[0] = inputs[1];
  apl_array* square = NULL;
  WANT(apl_program_call(program, "mm", inputs, 2, 1, &square, 1, &count) == APL_FINE);
  const float squared[] = {66, 75, 150, 171};
  WANT(apl_array_read(square, got) == APL_FINE && memcmp(got, squared, sizeof squared) == 0);
  WANT(apl_array_read(product, got) == APL_FINE && memcmp(got, want, sizeof want) == 0);

  const int64_t x = 40, xs[] = {1, 2, 3};
  apl_input scalar_and_array[] = {array(APL_TYPE_I64, 0, NULL, &x), array(APL_TYPE_I64, 1, x_shape, xs)};
  apl_array* two[2];
  WANT(apl_program_call(program, "two", scalar_and_array, 2, 1, two, 2, &count) == APL_FINE && count == 2);
  int64_t scalar = 0, sums[3];
  WANT(apl_array_rank(two[0]) == 0 && apl_array_read(two[0], &scalar) == APL_FINE && scalar == 41);
  WANT(apl_array_read(two[1], sums) == APL_FINE && sums[0] == 41 && sums[2] == 43);
  apl_array_free(two[0]);
  apl_array_free(two[1]);

  // What is wrong with a call.
  WANT(apl_program_call(program, "mm", inputs, 1, 1, results, 1, &count) == APL_FAULT_PROGRAM);
  WANT(strcmp(apl_program_error(program, 0)->code, "run.argument") == 0);
  WANT(apl_program_call(program, "none", inputs, 1, 1, results, 1, &count) == APL_FAULT_COMMAND_LINE);
  WANT(apl_program_call(program, "two", inputs, 2, 1, results, 1, &count) == APL_FAULT_PROGRAM);
  WANT(strstr(apl_program_error_text(program), "argument `x` of entry `two` is of type i64"));
  inputs[0] = array(APL_TYPE_F32, 2, a_shape, a);
  WANT(apl_program_call(program, "mm", inputs, 2, 1, results, 1, &count) == APL_FAULT_PROGRAM);
  WANT(strcmp(apl_program_error(program, 0)->code, "run.shape-mismatch") == 0);
  const int64_t short_shape[] = {1};
  apl_input few = array(APL_TYPE_F32, 1, short_shape, a);
  WANT(apl_program_call(program, "third", &few, 1, 1, results, 1, &count) == APL_FAULT_PROGRAM);
  WANT(strcmp(apl_program_error(program, 0)->code, "run.index-out-of-bounds") == 0);
  WANT(apl_program_error(program, 0)->place.line == 5);
  few.shape = x_shape;
  apl_array* third = NULL;
  WANT(apl_program_call(program, "third", &few, 1, 1, &third, 1, &count) == APL_FINE);
  WANT(apl_array_on_device(third) == 0 && *(float*)apl_array_data(third) == 3);
  // A call that does not wait, and what waits for it.
  few.shape = short_shape;
  WANT(apl_program_call(program, "third", &few, 1, 0, results + 1, 1, &count) == APL_FAULT_PROGRAM);
  apl_array* later = NULL;
  WANT(apl_program_call(program, "same", &few, 1, 0, &later, 1, &count) == APL_FINE);
  WANT(apl_program_wait(program) == APL_FINE);
  WANT(apl_array_read(later, got) == APL_FINE && got[0] == 1);
  apl_array_free(later);
  WANT(apl_program_set_stream(program, NULL) == APL_FINE);
  if (!on_device) WANT(apl_program_set_stream(program, &few) == APL_FAULT_LIMITATION);

  // A sparse operand, made once.
  const int64_t starts[] = {0, 1, 3};
  const int32_t columns[] = {2, 0, 1};
  const float values[] = {2, 3, 4};
  apl_csr csr = {sizeof csr, 2, 3, starts, columns, APL_TYPE_F32, values};
  apl_matrix* matrix = NULL;
  char* plan = NULL;
  WANT(apl_sparse_search(compiler, &csr, "spmm", 2, "cpu", 1, &plan) == APL_FINE && strlen(plan) > 20);
  if (!strstr(plan, "form dense")) WANT(apl_program_set_plan(program, "A", plan) == APL_FINE);
  WANT(apl_program_set_plan(program, "A", "rubbish") == APL_FAULT_PROGRAM);
  apl_text_free(plan);
  WANT(apl_program_matrix(program, "spmm", "A", &csr, &matrix) == APL_FINE);
  apl_matrix* refused = NULL;
  WANT(apl_program_matrix(program, "spmm", "B", &csr, &refused) == APL_FAULT_PROGRAM && refused == NULL);
  const int32_t falling[] = {2, 1, 0};
  csr.column = falling;
  WANT(apl_program_matrix(program, "spmm", "A", &csr, &refused) == APL_FAULT_PROGRAM && refused == NULL);
  inputs[0] = (apl_input){.size = sizeof *inputs, .matrix = matrix};
  inputs[1] = array(APL_TYPE_F32, 2, b_shape, b);
  const float sparse_product[] = {2, 2, 3, 4};
  for (int k = 0; k < 3; ++k) {
    apl_array* sparse = NULL;
    if (apl_program_call(program, "spmm", inputs, 2, 1, &sparse, 1, &count) != APL_FINE)
      fputs(apl_program_error_text(program), stderr);
    WANT(sparse && apl_array_read(sparse, got) == APL_FINE && memcmp(got, sparse_product, sizeof got) == 0);
    apl_array_free(sparse);
  }
  // The same as a dense matrix.
  const float dense[] = {0, 0, 2, 3, 4, 0};
  inputs[0] = array(APL_TYPE_F32, 2, a_shape, dense);
  apl_array* sparse = NULL;
  WANT(apl_program_call(program, "spmm", inputs, 2, 1, &sparse, 1, &count) == APL_FINE);
  WANT(apl_array_read(sparse, got) == APL_FINE && memcmp(got, sparse_product, sizeof got) == 0);
  apl_array_free(sparse);
  apl_matrix_free(matrix);

  // Results outlive the program.
  apl_module_free(module);
  apl_program_free(program);
  WANT(apl_array_read(square, got) == APL_FINE && memcmp(got, squared, sizeof squared) == 0);
  apl_array_free(square);
  apl_array_free(results[0]);
  apl_array_free(third);
}

// With a folder that has a CUDA driver, on that, too.
int main(int argc, char** argv) {
  WANT(strchr(apl_version(), '.'));
  apl_compiler *compiler = apl_compiler_new(), *other = apl_compiler_new();
  WANT(compiler && other);
  errors(compiler);
  modules(compiler);
  texts(compiler);
  run(compiler, "c");
  run(compiler, "emulate");
  if (argc > 1) {
    WANT(apl_compiler_set(compiler, "cuda-folders", argv[1]) == APL_FINE);
    run(compiler, "cuda");
  }
  passes(compiler, other);
  apl_program* program = NULL;
  apl_module* module = parse(compiler, "entry main (x: i64) = x");
  WANT(apl_program_load(compiler, module, "abacus", &program) == APL_FAULT_COMMAND_LINE && program == NULL);
  apl_module_free(module);
  apl_compiler_free(other);
  apl_compiler_free(compiler);
  puts("the C API from C: fine");
  return 0;
}
