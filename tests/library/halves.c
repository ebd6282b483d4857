// f16 of scalar.h for compilers that have no type for it, against the type of this one.
#include <stdio.h>

#ifndef __FLT16_MAX__
int main(void) {
  printf("skipped: the compiler has no _Float16\n");
  return 0;
}
#else
typedef _Float16 native;
#undef __FLT16_MAX__
#include "runtime/backends/scalar.h"

static uint16_t bits_of(native x) {
  uint16_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}
static native native_of(uint16_t bits) {
  native x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}
static int wrong = 0;
static void same(const char* what, double x, uint16_t ours, uint16_t theirs) {
  const int both_nan = (ours & 0x7fff) > 0x7c00 && (theirs & 0x7fff) > 0x7c00;
  if (ours != theirs && !both_nan && ++wrong < 10) printf("%s of %a: %04x, not %04x\n", what, x, ours, theirs);
}
static void check(double x) {
  same("f64", x, apl_to_half_of_f64(x).bits, bits_of((native)x));
  same("f32", x, apl_to_half((float)x).bits, bits_of((native)(float)x));
}

int main(void) {
  for (unsigned h = 0; h < 0x10000; ++h) {
    const apl_half half = apl_from_bits_f16((uint16_t)h);
    const float ours = apl_from_half(half), theirs = (float)native_of((uint16_t)h);
    if (!(ours == theirs || (ours != ours && theirs != theirs)) && ++wrong < 10)
      printf("%04x is %a\n", h, (double)ours);
    same("f16", (double)theirs, apl_to_half(theirs).bits, (uint16_t)h);
    same("sgn", (double)theirs, apl_sgn_f16(half).bits,
         bits_of((native)(theirs != theirs ? theirs : (theirs > 0) - (theirs < 0))));
    // Half-way to the next one, and on both sides of that.
    const double middle = ((double)theirs + (double)(float)native_of((uint16_t)(h + 1))) / 2;
    check(middle);
    check(nextafter(middle, 1e9));
    check(nextafter(middle, -1e9));
    check((double)nextafterf((float)middle, 1e9F));
    check((double)nextafterf((float)middle, -1e9F));
  }
  for (double x = 1e-9; x < 1e6; x *= 1.0001) check(x), check(-x);
  check(65519.99), check(65520), check(1e300), check(-1e300), check((double)INFINITY), check((double)NAN);
  return wrong != 0;
}
#endif
