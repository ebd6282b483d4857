// The kernels' texts for C.
#include <string>

#include "runtime/embed.h"
#include "runtime/sparse/device_operand.h"

extern "C" const char* apl_sparse_kernel_part(apl_sparse_text part) {
  static const std::string kTexts[] = {
      std::string(apl::device_warp_text()),   std::string(apl::sparse_numbers_text()),
      std::string(apl::sparse_rows_text()),   std::string(apl::sparse_windows_text()),
      std::string(apl::sparse_staged_text()), std::string(apl::sparse_spmm_text()),
      std::string(apl::sparse_sddmm_text()),  std::string(apl::sparse_values_text()),
      std::string(apl::sparse_join_text()),   std::string(apl::sparse_plain_windows_text()),
      std::string(apl::sparse_sample_text()),
  };
  return kTexts[part].c_str();
}
