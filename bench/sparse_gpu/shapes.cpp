#include "bench/sparse_gpu/shapes.h"

#include <nlohmann/json.hpp>

namespace apl::bench {

nlohmann::json shape_of(const apl_sparse_packed& f) {
  return {{"rows", f.rows},
          {"columns", f.columns},
          {"nonzeros", f.nonzeros},
          {"mean", f.statistics.mean},
          {"shared", f.statistics.shared},
          {"sorted", f.sorted > 0},
          {"longs", f.longs},
          {"mediums", f.mediums},
          {"records", f.records},
          {"longest", {f.longest[0], f.longest[1], f.longest[2]}},
          {"row_elements", f.row_elements},
          {"cuts", f.cuts},
          {"pieces", f.pieces},
          {"parts", f.parts},
          {"windows", f.windows},
          {"steps", f.steps},
          {"units", f.units},
          {"longest_window", f.longest_window}};
}

nlohmann::json shape_of(const apl_sparse_sddmm_packed& s) {
  return {{"rows", s.rows},   {"columns", s.columns}, {"nonzeros", s.nonzeros},    {"windows", s.windows},
          {"tasks", s.tasks}, {"steps", s.steps},     {"task_steps", s.task_steps}};
}

}  // namespace apl::bench
