// The header is one for C++ too.
#include "bodies.h"

int main() { return futhark_get_tuning_param_count() > 0 ? 0 : 1; }
