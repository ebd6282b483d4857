// NVRTC for a generated library: kernel text to machine code, kept in the caller's cache file. `apl_device_header` is
// the text of device.h, which kernels include: it stands before.
#ifndef APL_NVRTC_H
#define APL_NVRTC_H

#include <dlfcn.h>

#include "runtime/embedded/object.h"

// The first of the names that is there, in the loader's folders or a toolkit's usual ones.
static void* apl_open_library(const char* const* names) {
  static const char* const folders[] = {"",
                                        "/usr/local/cuda/lib64/",
                                        "/usr/local/cuda/targets/x86_64-linux/lib/",
                                        "/usr/local/cuda/targets/sbsa-linux/lib/",
                                        "/opt/cuda/lib64/",
                                        "/usr/lib/cuda/lib64/",
                                        "/usr/local/nvidia/lib64/",
                                        "/usr/lib/wsl/lib/",
                                        NULL};
  char path[256];
  for (const char* const* folder = folders; *folder; ++folder)
    for (const char* const* name = names; *name; ++name) {
      snprintf(path, sizeof path, "%s%s", *folder, *name);
      void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
      if (handle) return handle;
    }
  return NULL;
}

struct apl_nvrtc {
  int (*create)(void**, const char*, const char*, int, const char* const*, const char* const*);
  int (*compile)(void*, int, const char* const*);
  int (*log_size)(void*, size_t*);
  int (*log)(void*, char*);
  int (*cubin_size)(void*, size_t*);
  int (*cubin)(void*, char*);
  int (*destroy)(void**);
  int (*version)(int*, int*);
};

static bool apl_open_nvrtc(struct apl_nvrtc* nvrtc) {
  static const char* const names[] = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", NULL};
  void* library = apl_open_library(names);
  if (!library) return false;
  bool found = true;
#define APL_BIND(member, symbol)                      \
  *(void**)(&nvrtc->member) = dlsym(library, symbol); \
  found = found && nvrtc->member;
  APL_BIND(create, "nvrtcCreateProgram")
  APL_BIND(compile, "nvrtcCompileProgram")
  APL_BIND(log_size, "nvrtcGetProgramLogSize")
  APL_BIND(log, "nvrtcGetProgramLog")
  APL_BIND(cubin_size, "nvrtcGetCUBINSize")
  APL_BIND(cubin, "nvrtcGetCUBIN")
  APL_BIND(destroy, "nvrtcDestroyProgram")
  APL_BIND(version, "nvrtcVersion")
#undef APL_BIND
  return found;
}

// ---- the cache file: records one behind the other ----

struct apl_cache_record {
  char magic[8];
  uint64_t key[2];
  uint64_t bytes;  // of machine code that follow
  uint64_t sum;    // of these
};
static const char apl_cache_magic[8] = "aplcub2";

static uint64_t apl_checksum(const char* bytes, size_t count) {
  uint64_t sum = 0xcbf29ce484222325u;
  for (size_t k = 0; k < count; ++k) sum = (sum ^ (unsigned char)bytes[k]) * 0x100000001b3u;
  return sum;
}

static void apl_hash_text(uint64_t key[2], const char* text) {
  for (; *text; ++text)
    for (int k = 0; k < 2; ++k)
      key[k] = (key[k] ^ (unsigned char)*text) * (k == 0 ? 0x100000001b3u : 0x9e3779b97f4a7c15u);
  for (int k = 0; k < 2; ++k) key[k] = (key[k] ^ 0xff) * 0x100000001b3u;
}

// Machine code, the caller's to free; NULL if the file has none or is no such file.
static char* apl_find_cached(const char* file, const uint64_t key[2]) {
  FILE* in = file ? fopen(file, "rb") : NULL;
  if (!in) return NULL;
  struct apl_cache_record record;
  char* code = NULL;
  while (!code && fread(&record, sizeof record, 1, in) == 1) {
    if (memcmp(record.magic, apl_cache_magic, sizeof record.magic) != 0 || record.bytes > (1u << 30)) break;
    if (memcmp(record.key, key, sizeof record.key) != 0) {
      if (fseek(in, (long)record.bytes, SEEK_CUR) != 0) break;
      continue;
    }
    code = malloc(record.bytes);
    // What has changed on the disk is compiled again.
    if (!code || (fread(code, 1, record.bytes, in) == record.bytes && apl_checksum(code, record.bytes) == record.sum))
      break;
    free(code);
    code = NULL;
    break;
  }
  fclose(in);
  return code;
}

// One write to the end of the file: readers see whole records, or a last one that is cut, which they skip.
static void apl_add_cached(const char* file, const uint64_t key[2], const char* code, size_t bytes) {
  FILE* out = file ? fopen(file, "ab") : NULL;
  if (!out) return;
  struct apl_cache_record record = {{0}, {key[0], key[1]}, bytes, apl_checksum(code, bytes)};
  memcpy(record.magic, apl_cache_magic, sizeof record.magic);
  char* all = malloc(sizeof record + bytes);
  if (all) {
    memcpy(all, &record, sizeof record);
    memcpy(all + sizeof record, code, bytes);
    setvbuf(out, NULL, _IOFBF, sizeof record + bytes);
    fwrite(all, 1, sizeof record + bytes, out);
    free(all);
  }
  fclose(out);
}

// Machine code of a text for an architecture ("sm_90"), the caller's to free; NULL with an error in the context.
static char* apl_compile(struct futhark_context* ctx, const char* text, const char* architecture) {
  const struct futhark_context_config* cfg = ctx->config;
  struct apl_nvrtc nvrtc;
  char option[64];
  char* code = NULL;
  void* program = NULL;
  int major = 0, minor = 0;
  size_t size = 0;
  if (!apl_open_nvrtc(&nvrtc)) {
    apl_backend_error(&ctx->base, APL_ERROR, "libnvrtc.so of CUDA 12 or later is not on this machine");
    return NULL;
  }
  nvrtc.version(&major, &minor);
  const char** options = calloc((size_t)cfg->option_count + 3, sizeof *options);
  if (!options) return NULL;
  snprintf(option, sizeof option, "--gpu-architecture=%s", architecture);
  options[0] = option;
  options[1] = "--std=c++17";
  options[2] = "-lineinfo";
  for (int k = 0; k < cfg->option_count; ++k) options[3 + k] = cfg->options[k];
  uint64_t key[2] = {0xcbf29ce484222325u, (uint64_t)major * 100 + (uint64_t)minor};
  for (int k = 0; k < cfg->option_count + 3; ++k) apl_hash_text(key, options[k]);
  apl_hash_text(key, apl_device_header);
  apl_hash_text(key, text);
  code = apl_find_cached(cfg->cache_file, key);
  if (code) {
    free(options);
    return code;
  }
  const double start = apl_now();
  const char* const headers[] = {apl_device_header};
  const char* const names[] = {"device.h"};
  int result = nvrtc.create(&program, text, "kernels.cu", 1, headers, names);
  if (result == 0) result = nvrtc.compile(program, cfg->option_count + 3, options);
  if (result == 0) result = nvrtc.cubin_size(program, &size);
  if (result == 0 && (code = malloc(size))) result = nvrtc.cubin(program, code);
  if (result != 0 || !code) {
    char* log = program && nvrtc.log_size(program, &size) == 0 ? calloc(1, size + 1) : NULL;
    if (log) nvrtc.log(program, log);
    apl_backend_error(&ctx->base, APL_ERROR, "NVRTC refuses the kernels (error %d):\n%.900s", result, log ? log : "");
    free(log);
    free(code);
    code = NULL;
  } else {
    apl_log(ctx, "compiled kernels with NVRTC %d.%d for %s in %.2f s", major, minor, architecture,
            (apl_now() - start) * 1e-6);
    apl_add_cached(cfg->cache_file, key, code, size);
  }
  if (program) nvrtc.destroy(&program);
  free(options);
  return code;
}

#endif
