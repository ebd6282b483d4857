// Configurations: set up before a context is made from them, and freed after it. Texts are copied.
struct futhark_context_config;
struct futhark_context_config* futhark_context_config_new(void);
void futhark_context_config_free(struct futhark_context_config* cfg);
void futhark_context_config_set_debugging(struct futhark_context_config* cfg, int flag);
void futhark_context_config_set_profiling(struct futhark_context_config* cfg, int flag);
void futhark_context_config_set_logging(struct futhark_context_config* cfg, int flag);
// 0 if there is such a parameter. 0 as its value is the default.
int futhark_context_config_set_tuning_param(struct futhark_context_config* cfg, const char* name, size_t value);
// Machine code of kernels is kept there from run to run.
void futhark_context_config_set_cache_file(struct futhark_context_config* cfg, const char* file);
void futhark_context_config_set_num_threads(struct futhark_context_config* cfg, int n);

int futhark_get_tuning_param_count(void);
const char* futhark_get_tuning_param_name(int i);
const char* futhark_get_tuning_param_class(int i);

// Contexts. Functions that return an int give 0, FUTHARK_PROGRAM_ERROR, FUTHARK_OUT_OF_MEMORY or another number, those
// that return a pointer NULL if they fail; the text is then in the context. After _new look at _get_error.
struct futhark_context;
struct futhark_context* futhark_context_new(struct futhark_context_config* cfg);
void futhark_context_free(struct futhark_context* ctx);
int futhark_context_sync(struct futhark_context* ctx);
// The last error, which is then forgotten: the caller's to free; NULL if there is none.
char* futhark_context_get_error(struct futhark_context* ctx);
int futhark_context_clear_caches(struct futhark_context* ctx);
void futhark_context_set_logging_file(struct futhark_context* ctx, FILE* file);
void futhark_context_pause_profiling(struct futhark_context* ctx);
void futhark_context_unpause_profiling(struct futhark_context* ctx);
// JSON, the caller's to free.
char* futhark_context_report(struct futhark_context* ctx);
