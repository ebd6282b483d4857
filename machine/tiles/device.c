// Device records as text.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "machine/tiles/shape.h"

enum field_type { FIELD_NAME, FIELD_TEXT, FIELD_KIND, FIELD_FLAG, FIELD_INT32, FIELD_INT64, FIELD_REAL };
enum field_need { NEEDED_ANY, NEEDED_GPU, NEEDED_CPU, NEEDED_SPARSE };
struct field {
  const char* name;
  size_t offset, size;
  enum field_type type;
  enum field_need needed;
};

#define APL_DEVICE_FIELD(type, name, needed) \
  {#name, offsetof(struct apl_device, name), sizeof(((struct apl_device*)0)->name), FIELD_##type, NEEDED_##needed},
static const struct field kDeviceFields[] = {
#include "machine/tiles/device_fields.def"
};
enum { kDeviceFieldCount = sizeof kDeviceFields / sizeof kDeviceFields[0] };

static int is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// The value of one field from the text between `from` and `to`.
static int set_field(struct apl_device* device, const struct field* field, const char* from, const char* to) {
  char text[128];
  const size_t length = (size_t)(to - from);
  if (length == 0 || length >= sizeof text) return 0;
  memcpy(text, from, length);
  text[length] = '\0';
  char* at = (char*)device + field->offset;
  char* end = text;
  switch (field->type) {
    case FIELD_NAME:
    case FIELD_TEXT:
      if (length >= field->size) return 0;
      memcpy(at, text, length + 1);
      return 1;
    case FIELD_KIND: {
      const int32_t kind = strcmp(text, "cpu") == 0 ? APL_DEVICE_CPU : APL_DEVICE_GPU;
      if (kind == APL_DEVICE_GPU && strcmp(text, "gpu") != 0) return 0;
      memcpy(at, &kind, sizeof kind);
      return 1;
    }
    case FIELD_REAL: {
      const double value = strtod(text, &end);
      if (*end != '\0' || !(value >= 0) || value > 1e12) return 0;
      memcpy(at, &value, sizeof value);
      return 1;
    }
    case FIELD_FLAG:
    case FIELD_INT32:
    case FIELD_INT64: {
      const long long value = strtoll(text, &end, 10);
      const long long most = field->type == FIELD_FLAG ? 1 : field->type == FIELD_INT32 ? INT32_MAX : INT64_MAX;
      if (*end != '\0' || value < 0 || value > most) return 0;
      const int32_t narrow = (int32_t)value;
      const int64_t wide = value;
      memcpy(at, field->type == FIELD_INT64 ? (const void*)&wide : (const void*)&narrow, field->size);
      return 1;
    }
  }
  return 0;
}

int apl_device_parse(const char* text, struct apl_device* device, int* line) {
  unsigned char given[kDeviceFieldCount] = {0};
  memset(device, 0, sizeof *device);
  *line = 0;
  for (const char* at = text; *at != '\0';) {
    ++*line;
    const char* end = strchr(at, '\n');
    if (end == NULL) end = at + strlen(at);
    const char* stop = memchr(at, '#', (size_t)(end - at));
    if (stop == NULL) stop = end;
    // What follows is the profile of the search for sparse formats.
    static const char kProfile[] = "apl-device-profile";
    if (strncmp(at, kProfile, sizeof kProfile - 1) == 0) break;
    while (at < stop && is_blank(*at)) ++at;
    while (stop > at && is_blank(stop[-1])) --stop;
    if (at < stop) {
      const char* equals = memchr(at, '=', (size_t)(stop - at));
      if (equals == NULL) return 0;
      const char *last = equals, *value = equals + 1;
      while (last > at && is_blank(last[-1])) --last;
      while (value < stop && is_blank(*value)) ++value;
      int k = 0;
      while (k < kDeviceFieldCount && (strlen(kDeviceFields[k].name) != (size_t)(last - at) ||
                                       memcmp(kDeviceFields[k].name, at, (size_t)(last - at)) != 0))
        ++k;
      if (k == kDeviceFieldCount || !set_field(device, &kDeviceFields[k], value, stop)) return 0;
      given[k] = 1;
    }
    at = *end == '\0' ? end : end + 1;
  }
  // What divides must not be nothing.
  if (device->multiprocessors < 1 || !(device->clock_ghz > 0) || !(device->fmas_per_clock > 0)) return 0;
  if (!(device->memory_gbs > 0) || !(device->cache_gbs > 0) || device->block_shared < 1) return 0;
  const int gpu = device->kind == APL_DEVICE_GPU;
  int has_sparse = 0;
  for (int k = 0; k < kDeviceFieldCount; ++k)
    if (kDeviceFields[k].needed == NEEDED_SPARSE && given[k]) has_sparse = 1;
  for (int k = 0; k < kDeviceFieldCount; ++k) {
    const enum field_need needed = kDeviceFields[k].needed;
    const int is_needed = needed == NEEDED_ANY || (needed == NEEDED_GPU && gpu) || (needed == NEEDED_CPU && !gpu) ||
                          (needed == NEEDED_SPARSE && has_sparse);
    if (is_needed && !given[k]) return 0;
  }
  const int warp = device->warp, banks = device->shared_banks;
  if (gpu && (device->schedulers < 1 || device->registers < 1 || device->multiprocessor_threads < 1 || warp < 1 ||
              warp > APL_PLAN_MOST_LANES || (warp & (warp - 1)) != 0 || banks < 1 || banks > APL_PLAN_MOST_LANES ||
              device->sector_bytes < 1 || device->line_bytes < device->sector_bytes))
    return 0;
  return 1;
}
