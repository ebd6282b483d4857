// The handler that XLA calls for apl.jax: it hands buffers over to a function of the module _apl. Compiled by apl.jax
// against the headers that come with jaxlib.
#include <stdio.h>
#include <string.h>

#include "xla/ffi/api/c_api.h"

struct ffi_array {
  int32_t type;
  int64_t rank;
  const int64_t* shape;
  void* data;
};
typedef int (*ffi_function)(int64_t target, int device, const struct ffi_array* arguments, int64_t argument_count,
                            const struct ffi_array* results, int64_t result_count, void* stream, char* message,
                            size_t capacity);

// Numbers of apl's scalar types.
static int32_t type_of(XLA_FFI_DataType type) {
  switch (type) {
    case XLA_FFI_DataType_S8: return 0;
    case XLA_FFI_DataType_S16: return 1;
    case XLA_FFI_DataType_S32: return 2;
    case XLA_FFI_DataType_S64: return 3;
    case XLA_FFI_DataType_U8: return 4;
    case XLA_FFI_DataType_U16: return 5;
    case XLA_FFI_DataType_U32: return 6;
    case XLA_FFI_DataType_U64: return 7;
    case XLA_FFI_DataType_F16: return 8;
    case XLA_FFI_DataType_BF16: return 9;
    case XLA_FFI_DataType_F32: return 10;
    case XLA_FFI_DataType_F64: return 11;
    case XLA_FFI_DataType_PRED: return 12;
    default: return -1;
  }
}

static XLA_FFI_Error* fail(const XLA_FFI_Api* api, const char* message) {
  XLA_FFI_Error_Create_Args args;
  memset(&args, 0, sizeof args);
  args.struct_size = sizeof args;
  args.message = message;
  args.errc = XLA_FFI_Error_Code_INTERNAL;
  return api->XLA_FFI_Error_Create(&args);
}

static int64_t number(const XLA_FFI_Attrs* attrs, const char* name) {
  for (int64_t k = 0; k < attrs->size; ++k)
    if (attrs->names[k]->len == strlen(name) && memcmp(attrs->names[k]->ptr, name, attrs->names[k]->len) == 0 &&
        attrs->types[k] == XLA_FFI_AttrType_SCALAR)
      return *(const int64_t*)((const XLA_FFI_Scalar*)attrs->attrs[k])->value;
  return 0;
}

enum { kMost = 64 };

static int take(struct ffi_array* array, const XLA_FFI_Buffer* buffer) {
  array->type = type_of(buffer->dtype);
  array->rank = buffer->rank;
  array->shape = buffer->dims;
  array->data = buffer->data;
  return array->type >= 0;
}

static XLA_FFI_Error* call(XLA_FFI_CallFrame* frame, int on_device) {
  // The name of its type differs between versions of jaxlib.
  const __typeof__(*frame->extension_start)* extension = frame->extension_start;
  if (extension && extension->type == XLA_FFI_Extension_Metadata) {
    XLA_FFI_Metadata* metadata = ((const XLA_FFI_Metadata_Extension*)extension)->metadata;
    metadata->api_version.major_version = XLA_FFI_API_MAJOR;
    metadata->api_version.minor_version = XLA_FFI_API_MINOR;
    return NULL;
  }
  if (frame->stage != XLA_FFI_ExecutionStage_EXECUTE) return NULL;
  struct ffi_array arguments[kMost], results[kMost];
  if (frame->args.size > kMost || frame->rets.size > kMost) return fail(frame->api, "too many buffers");
  for (int64_t k = 0; k < frame->args.size; ++k)
    if (!take(&arguments[k], frame->args.args[k])) return fail(frame->api, "a buffer of a type that apl does not have");
  for (int64_t k = 0; k < frame->rets.size; ++k)
    if (!take(&results[k], frame->rets.rets[k])) return fail(frame->api, "a buffer of a type that apl does not have");
  void* stream = NULL;
  int32_t device = 0;
  if (on_device) {
    XLA_FFI_DeviceOrdinal_Get_Args ordinal;
    memset(&ordinal, 0, sizeof ordinal);
    ordinal.struct_size = sizeof ordinal;
    ordinal.ctx = frame->ctx;
    XLA_FFI_Error* unknown = frame->api->XLA_FFI_DeviceOrdinal_Get(&ordinal);
    if (unknown) return unknown;
    device = ordinal.device_ordinal;
    XLA_FFI_Stream_Get_Args args;
    memset(&args, 0, sizeof args);
    args.struct_size = sizeof args;
    args.ctx = frame->ctx;
    XLA_FFI_Error* error = frame->api->XLA_FFI_Stream_Get(&args);
    if (error) return error;
    stream = args.stream;
  }
  char message[1000] = "";
  const ffi_function function = (ffi_function)(intptr_t)number(&frame->attrs, "function");
  if (function(number(&frame->attrs, "target"), device, arguments, frame->args.size, results, frame->rets.size, stream,
               message, sizeof message) != 0)
    return fail(frame->api, message);
  return NULL;
}

XLA_FFI_Error* apl_ffi_cpu(XLA_FFI_CallFrame* frame) { return call(frame, 0); }
XLA_FFI_Error* apl_ffi_cuda(XLA_FFI_CallFrame* frame) { return call(frame, 1); }
