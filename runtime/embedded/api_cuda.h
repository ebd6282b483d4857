
// A device by a part of its name, or by its number ("#1").
void futhark_context_config_set_device(struct futhark_context_config* cfg, const char* s);
void futhark_context_config_add_nvrtc_option(struct futhark_context_config* cfg, const char* opt);
// Not Futhark's: the caller's CUstream (a cudaStream_t is one), of the device's primary context, on which everything
// then happens. It must live as long as the context.
void futhark_context_config_set_stream(struct futhark_context_config* cfg, void* stream);
// Not Futhark's: where device memory comes from and goes to; `allocate` gives 0 if it could. What is released may still
// be in use by work on the stream that was given it earlier.
void futhark_context_config_set_allocator(struct futhark_context_config* cfg,
                                          int (*allocate)(void* user, void** data, size_t bytes, void* stream),
                                          void (*release)(void* user, void* data, void* stream), void* user);
