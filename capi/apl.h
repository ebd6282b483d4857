/* apl from C: a compiler in a library. Every function of this header is exported, and nothing else.
 *
 *     apl_compiler *compiler = apl_compiler_new();
 *     apl_module *module;
 *     apl_program *program;
 *     if (apl_parse_source(compiler, "sum.fut", text, strlen(text), &module) != APL_FINE ||
 *         apl_program_load(compiler, module, "c", &program) != APL_FINE)
 *       fputs(apl_compiler_error_text(compiler), stderr);
 *
 * Functions that can fail give an apl_fault, APL_FINE if they did not; what went wrong is then with the compiler or
 * the program that they were called with, until the next call with it. Results are stored only on success. Nothing is
 * thrown, printed or read from the environment. A compiler with its modules belongs to one thread at a time; different
 * ones may be used at the same time. A program takes calls from any thread, one after the other.
 *
 * A null pointer where an object or a text is wanted is APL_FAULT_COMMAND_LINE, or gives 0, null or "" from functions
 * without a fault; so is an object of another kind, and one that was freed as long as nothing else got its memory. No
 * object keeps the error if it is the compiler or program itself that is missing.
 *
 * Texts end in a null byte. Those that a function stores in a `char **` are freed by apl_text_free; those that it
 * returns are the library's, and stay until the object that they come from changes or is freed. Objects may be freed in
 * any order; freeing a null pointer does nothing.
 *
 * The version of a symbol is that of the release it came with (APL_0.1). Structures that the library hands out may get
 * more fields at their end; those that it is given begin with their size. */
#ifndef APL_H
#define APL_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define APL_API __attribute__((visibility("default")))
#else
#define APL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Whose fault it is: the numbers are the exit codes of aplc. */
typedef enum apl_fault {
  APL_FINE = 0,
  APL_FAULT_PROGRAM = 2,       /* the program that was given is wrong, or its arguments are */
  APL_FAULT_LIMITATION = 3,    /* of apl, or of this machine */
  APL_FAULT_COMMAND_LINE = 64, /* an argument of the function makes no sense */
  APL_FAULT_BUG = 70,          /* of apl */
  APL_FAULT_MACHINE = 71       /* no memory, a full disk */
} apl_fault;

typedef enum apl_scalar_type {
  APL_TYPE_I8,
  APL_TYPE_I16,
  APL_TYPE_I32,
  APL_TYPE_I64,
  APL_TYPE_U8,
  APL_TYPE_U16,
  APL_TYPE_U32,
  APL_TYPE_U64,
  APL_TYPE_F16,
  APL_TYPE_BF16,
  APL_TYPE_F32,
  APL_TYPE_F64,
  APL_TYPE_BOOL, /* one byte */
  APL_TYPE_UNIT  /* no bytes */
} apl_scalar_type;

typedef struct apl_compiler apl_compiler;
typedef struct apl_module apl_module;
typedef struct apl_program apl_program;
typedef struct apl_matrix apl_matrix;
typedef struct apl_array apl_array;
typedef struct apl_pass_context apl_pass_context;

/* "0.2.0" */
APL_API const char* apl_version(void);
APL_API void apl_text_free(char* text);

/* -- What the library says ---------------------------------------------------------------------------------------- */

/* Lines and columns count from 1, columns in bytes; line 0: no place. The range is inclusive. */
typedef struct apl_place {
  const char* file;
  uint32_t line, column, end_line, end_column;
} apl_place;

typedef enum apl_severity { APL_SEVERITY_ERROR, APL_SEVERITY_WARNING, APL_SEVERITY_NOTE } apl_severity;

typedef struct apl_diagnostic {
  apl_severity severity;
  apl_fault fault;
  const char* code; /* "type.mismatch": stable, ir/diagnostics.def lists them */
  const char* message;
  apl_place place;
  const char* hint; /* "" without one */
  size_t note_count;
  const char* const* notes;
  const apl_place* note_places;
} apl_diagnostic;

typedef enum apl_remark_kind { APL_REMARK_APPLIED, APL_REMARK_MISSED, APL_REMARK_ANALYSIS } apl_remark_kind;

/* What a pass did, did not do, or found out. */
typedef struct apl_remark {
  apl_remark_kind kind;
  const char* pass;
  const char* code; /* stable within the pass */
  const char* function;
  const char* message;
  apl_place place;
  size_t fact_count;
  const char* const* fact_names;
  const char* const* fact_values;
  const char* suggestion; /* "" without one */
} apl_remark;

/* -- A compiler: settings, passes, errors ------------------------------------------------------------------------- */

/* Null if there is no memory. */
APL_API apl_compiler* apl_compiler_new(void);
APL_API void apl_compiler_free(apl_compiler* compiler);

/* Errors and warnings of the last call with the compiler that can fail. */
APL_API size_t apl_compiler_error_count(const apl_compiler* compiler);
APL_API const apl_diagnostic* apl_compiler_error(const apl_compiler* compiler, size_t k); /* null: there is no such */
/* All of them for people, with the lines of the source. */
APL_API const char* apl_compiler_error_text(const apl_compiler* compiler);

/* Called while passes run, in the thread that runs them; what it is given lasts for the call. Null: nobody. */
APL_API void apl_compiler_on_remark(apl_compiler* compiler, void (*sink)(void* user, const apl_remark* remark),
                                    void* user);

/* Settings: "device", a record of a machine for which plans are chosen; "cache", a folder for compiled objects, which
 * other processes may share ("": in memory alone); "temporary", a folder for files of compilers; "cc" and "c-flags";
 * "cuda-device", its number; "cuda-folders", where to look for CUDA's libraries first, with colons between; "verify",
 * "0" to leave out the verification after each pass; "seed" of the interpreter and of emulation; "disable", passes to
 * leave out, with commas between. APL_FAULT_COMMAND_LINE for another name or a value that makes no sense. */
APL_API apl_fault apl_compiler_set(apl_compiler* compiler, const char* name, const char* value);
/* A tuning parameter ("mm0.T_a"), at least 1; 0 takes it back. */
APL_API apl_fault apl_compiler_set_parameter(apl_compiler* compiler, const char* name, int64_t value);
/* A size of programs, for apl_emit_kernel, apl_explain and apl_report; 0 takes it back. */
APL_API apl_fault apl_compiler_set_size(apl_compiler* compiler, const char* name, int64_t value);

typedef struct apl_pass {
  size_t size; /* sizeof(apl_pass) */
  const char* name;
  const char* summary;
  /* Stages that the pass takes, with blanks between: "soac kernel"; null: all. */
  const char* stages;
  /* Options, `count` of each: their names, and defaults that say of what type they are: "true" or "false", a number,
   * else a text. */
  size_t option_count;
  const char* const* option_names;
  const char* const* option_defaults;
  /* Changes the module, or does not; APL_FINE, or what apl_pass_fail gave. It must not free the module, and not use the
   * compiler that runs it. */
  apl_fault (*run)(void* user, apl_module* module, apl_pass_context* context);
  void* user;
} apl_pass;

APL_API apl_fault apl_compiler_add_pass(apl_compiler* compiler, const apl_pass* pass);
/* POINT:PIPELINE, as `aplc --insert` takes it: a pipeline at a point of the standard ones. */
APL_API apl_fault apl_compiler_insert(apl_compiler* compiler, const char* insertion);
/* A pass plug-in in C++ (docs/adding-a-pass.md). */
APL_API apl_fault apl_compiler_load_plugin(apl_compiler* compiler, const char* path);
APL_API size_t apl_compiler_pass_count(const apl_compiler* compiler);
APL_API const char* apl_compiler_pass_name(const apl_compiler* compiler, size_t k); /* null: there is no such */
APL_API const char* apl_compiler_pass_summary(const apl_compiler* compiler, size_t k);

/* For passes. An option's value as text; null if the pass has no such option. */
APL_API const char* apl_pass_option(apl_pass_context* context, const char* name);
/* `pass` and `place.file` are the library's to fill in. */
APL_API void apl_pass_remark(apl_pass_context* context, const apl_remark* remark);
/* What `run` returns if it cannot go on: the message becomes the pipeline's error. */
APL_API apl_fault apl_pass_fail(apl_pass_context* context, const char* message);
/* apl_module_replace of a pass: whether the text was one of a module. */
APL_API apl_fault apl_pass_replace(apl_pass_context* context, apl_module* module, const char* text, size_t length);

/* -- Modules ------------------------------------------------------------------------------------------------------ */

/* Futhark source. `name` is for messages, and imports are found beside it. */
APL_API apl_fault apl_parse_source(apl_compiler* compiler, const char* name, const char* text, size_t length,
                                   apl_module** module);
/* Textual IR (docs/ir.md) of any stage, which is verified: also the way to build a module. */
APL_API apl_fault apl_parse_ir(apl_compiler* compiler, const char* name, const char* text, size_t length,
                               apl_module** module);
APL_API apl_fault apl_module_copy(apl_compiler* compiler, const apl_module* module, apl_module** copy);
APL_API void apl_module_free(apl_module* module);
APL_API const char* apl_module_stage(const apl_module* module); /* "soac", "kernel" or "memory" */
/* Textual IR; with `locations` each statement says where it comes from. */
APL_API apl_fault apl_module_print(apl_compiler* compiler, const apl_module* module, int locations, char** text);
/* The module becomes that of the text, which is verified; if that fails it stays as it was. */
APL_API apl_fault apl_module_replace(apl_compiler* compiler, apl_module* module, const char* text, size_t length);
APL_API apl_fault apl_module_verify(apl_compiler* compiler, const apl_module* module);

typedef struct apl_statement {
  const char* function;
  const char* operation; /* its keyword: "map", "add" */
  const char* text;      /* textual IR, with the statements inside of it */
  unsigned depth;        /* of bodies around it in its function */
  apl_place place;
} apl_statement;
/* Visits all statements, each before those inside of it, until `visit` gives something other than 0. */
APL_API apl_fault apl_module_walk(apl_compiler* compiler, const apl_module* module,
                                  int (*visit)(void* user, const apl_statement* statement), void* user);

/* Runs passes: a text such as "fuse,simplify{option=value}", or "soac", "kernel" or "memory" for the standard pipeline
 * up to that stage. On failure the module is as it was before the pass that failed. */
APL_API apl_fault apl_run_pipeline(apl_compiler* compiler, apl_module* module, const char* pipeline);
/* The standard pipeline for a backend up to a stage, with what was inserted. */
APL_API apl_fault apl_standard_pipeline(apl_compiler* compiler, const char* backend, const char* stage, char** text);

typedef struct apl_value_type {
  apl_scalar_type type;
  size_t rank; /* 0: a scalar */
  int sparse;  /* a matrix that may be given as apl_matrix */
} apl_value_type;
typedef struct apl_param {
  const char* name;
  const char* type;   /* of the source */
  size_t value_count; /* a record or tuple is several values */
} apl_param;
typedef struct apl_entry_info {
  const char* name;
  size_t param_count;
  const apl_param* params;
  size_t input_count, output_count;
  const apl_value_type *inputs, *outputs;
  size_t result_count;
  const char* const* result_types; /* of the source */
} apl_entry_info;
APL_API size_t apl_module_entry_count(const apl_module* module);
APL_API const apl_entry_info* apl_module_entry(const apl_module* module, size_t k); /* null: there is no such */

/* -- Texts that are made of a module ------------------------------------------------------------------------------ */

/* Modules that are not at the memory stage yet take the rest of the standard pipeline, as copies. `dialect`: "c",
 * "cuda" or "hip". */
APL_API apl_fault apl_emit_program(apl_compiler* compiler, const apl_module* module, const char* dialect, char** text);
/* One entry's kernels and a function that launches them; `entry` may be null if there is only one. */
APL_API apl_fault apl_emit_kernel(apl_compiler* compiler, const apl_module* module, const char* dialect,
                                  const char* entry, char** text);
/* A library with Futhark's C API: NAME.c, NAME.h and NAME.json. */
APL_API apl_fault apl_emit_library(apl_compiler* compiler, const apl_module* module, const char* dialect,
                                   const char* name, char** source, char** header, char** manifest);
/* What became of each line, as `aplc explain` says it, for the machine of the setting "device" (default: cpu); and a
 * page in HTML about all of it, as of `aplc report`. The module is at the soac stage. */
APL_API apl_fault apl_explain(apl_compiler* compiler, const apl_module* module, char** text);
APL_API apl_fault apl_report(apl_compiler* compiler, const apl_module* module, char** html);

/* -- Running ------------------------------------------------------------------------------------------------------ */

/* Compiles and loads. Backends: "c" (this machine's C compiler), "cuda" (its driver and NVRTC), "emulate" (a GPU's
 * threads one by one, every access checked). */
APL_API apl_fault apl_program_load(apl_compiler* compiler, const apl_module* module, const char* backend,
                                   apl_program** program);
/* What its calls gave stays. */
APL_API void apl_program_free(apl_program* program);
/* Of the last call with the program that failed. */
APL_API size_t apl_program_error_count(const apl_program* program);
APL_API const apl_diagnostic* apl_program_error(const apl_program* program, size_t k);
APL_API const char* apl_program_error_text(const apl_program* program);
APL_API size_t apl_program_entry_count(const apl_program* program);
APL_API const apl_entry_info* apl_program_entry(const apl_program* program, size_t k);

/* An argument: row-major elements without gaps, which are not copied where the backend can read them, and which nobody
 * may change during the call. A scalar has rank 0, and `data` points to it. */
typedef struct apl_input {
  size_t size; /* sizeof(apl_input) */
  apl_scalar_type type;
  size_t rank;
  const int64_t* shape;
  const void* data;
  int on_device;            /* `data` is memory of the program's CUDA device */
  const apl_matrix* matrix; /* for a sparse operand; null: the dense matrix above */
} apl_input;

/* Calls an entry: one input for each value that it takes, `*output_count` receives how many it gave, the first
 * `capacity` of which are stored in `outputs`. With `wait` 0 a call of backend cuda returns when its kernels are
 * launched; what they find wrong is the error of the next call that waits, or of apl_program_wait. */
APL_API apl_fault apl_program_call(apl_program* program, const char* entry, const apl_input* inputs, size_t input_count,
                                   int wait, apl_array** outputs, size_t capacity, size_t* output_count);
APL_API apl_fault apl_program_wait(apl_program* program);
/* Backend cuda: a CUstream (cudaStream_t) of the device's primary context for all that follows. */
APL_API apl_fault apl_program_set_stream(apl_program* program, void* stream);
/* Of the last call that waited, without what copies inputs and results. */
APL_API double apl_program_microseconds(const apl_program* program);

/* Results: the program's memory, which goes back when they are freed. */
APL_API void apl_array_free(apl_array* array);
APL_API apl_scalar_type apl_array_type(const apl_array* array);
APL_API size_t apl_array_rank(const apl_array* array);
APL_API const int64_t* apl_array_shape(const apl_array* array);
APL_API void* apl_array_data(const apl_array* array);
APL_API int apl_array_on_device(const apl_array* array);
APL_API size_t apl_array_bytes(const apl_array* array);
/* Copies all of its bytes to the host, and waits for them. An array keeps no errors: the fault is all there is. */
APL_API apl_fault apl_array_read(const apl_array* array, void* host);

/* The meaning of a module at any stage, by the interpreter: slow, every access checked. Dense inputs on the host. */
APL_API apl_fault apl_interpret(apl_compiler* compiler, const apl_module* module, const char* entry,
                                const apl_input* inputs, size_t input_count, apl_array** outputs, size_t capacity,
                                size_t* output_count);

/* Compressed rows: row i has the non-zeros from row_start[i] to row_start[i + 1], whose columns rise. */
typedef struct apl_csr {
  size_t size; /* sizeof(apl_csr) */
  int64_t rows, columns;
  const int64_t* row_start; /* rows + 1 */
  const int32_t* column;
  apl_scalar_type type;
  const void* values; /* one for each non-zero; null for apl_sparse_search alone */
} apl_csr;
/* An operand of one entry, copied and packed once for many calls. */
APL_API apl_fault apl_program_matrix(apl_program* program, const char* entry, const char* operand,
                                     const apl_csr* matrix, apl_matrix** made);
APL_API void apl_matrix_free(apl_matrix* matrix);
/* The plan of `aplc sparse search` for matrices of an operand that are made from now on; null takes it away. */
APL_API apl_fault apl_program_set_plan(apl_program* program, const char* operand, const char* plan);
/* Searches for a plan: `operation` is "spmm" or "sddmm", `width` how many iterations its dense loop has, `device`
 * "cpu", "h200" or the text of a profile; `seconds` 0: no limit. */
APL_API apl_fault apl_sparse_search(apl_compiler* compiler, const apl_csr* matrix, const char* operation, int64_t width,
                                    const char* device, double seconds, char** plan);

#ifdef __cplusplus
}
#endif
#endif
