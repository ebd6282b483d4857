// A Screma of scalar code, many indices at a time: the map function in columns, what it gives folded in row-major
// order. Before the memory stage only, where no order of the indices and no memory of threads is checked.
#include <algorithm>

#include "ir/interpret/columns.h"
#include "ir/interpret/screma.h"

namespace apl::interpreter {

struct ColumnLambda {
  std::optional<ColumnCode> code;
  std::vector<Column> columns;
  std::vector<ColumnSource> sources;
  std::vector<std::pair<std::size_t, Value>> uniforms;  // those that are not constants
};

namespace {

// Fewer are not worth the preparation.
constexpr std::int64_t kFewest = 4;

// Whether every element may be read, and where.
bool is_readable(const Array& array) {
  if (!array.storage || array.private_rank != 0 || array.storage->per_thread() || !array.storage->defined.empty())
    return false;
  if (array.empty()) return true;
  const std::optional<Reach> reach = reach_of(array);
  const auto elements = static_cast<std::int64_t>(array.storage->bytes.size()) / std::max(1, byte_size(array.element));
  return reach && reach->first >= 0 && reach->last < elements;
}

}  // namespace

// The operator if there is nothing else, on its parameters.
struct SingleOperator {
  BinaryOp op;
  bool flipped;
};
static std::optional<SingleOperator> single_operator(const ColumnCode& code) {
  if (code.steps.size() != 1 || code.params.size() != 2 || code.results.size() != 1) return std::nullopt;
  const ColumnStep& step = code.steps.front();
  if (step.kind != ColumnStep::Kind::binary || code.results.front() != step.target) return std::nullopt;
  const bool straight = step.x == code.params[0] && step.y == code.params[1];
  const bool flipped = step.x == code.params[1] && step.y == code.params[0];
  if (straight == flipped || !folds_lanes(step.binary, code.types[step.target])) return std::nullopt;
  return SingleOperator{step.binary, flipped};
}

ColumnLambda& Machine::columns_of(const std::vector<Value>& indices, const Lambda& lambda) {
  std::shared_ptr<ColumnLambda>& made = columns_[lambda.body.get()];
  if (made) return *made;
  made = std::make_shared<ColumnLambda>();
  made->code = compile_columns(indices, lambda, frame_->function->values);
  if (!made->code) return *made;
  for (const ScalarType type : made->code->types) made->columns.emplace_back(type);
  for (const auto& [column, x] : made->code->uniforms) {
    if (x.is_constant())
      made->columns[column].fill(x.constant());
    else
      made->uniforms.emplace_back(column, x.value());
  }
  made->sources.resize(made->code->arrays.size());
  return *made;
}

class Machine::ColumnRun {
 public:
  explicit ColumnRun(Machine& machine, ScremaRun& run)
      : machine_(machine), run_(run), map_(machine.columns_of(run.op.indices, run.op.map)) {}

  bool prepare() {
    if (!map_.code || !run_.scalars_only || run_.streams.widths.empty()) return false;
    for (const ReduceOp& reduce : run_.op.reduces) {
      Operator& op = operators_.emplace_back(Operator{machine_.columns_of({}, reduce.op), {}});
      if (!op.lambda.code || !enter(op.lambda)) return false;
      op.single = single_operator(*op.lambda.code);
    }
    const std::vector<Array>& arrays = run_.streams.arrays;
    if (!std::ranges::all_of(arrays, is_readable) || !enter(map_)) return false;
    for (const std::vector<Array>* group : {&run_.mapped, &run_.scanned})
      for (const Array& array : *group)
        if (array.storage && (!is_readable(array) || !array.row_major())) return false;
    for (const Array& array : arrays) starts_.emplace_back(is_linear(array) ? 0 : kLanes);
    can_fail_ = std::ranges::any_of(operators_, [](const Operator& op) { return !op.single; });
    return true;
  }

  std::int64_t run(std::int64_t total) {
    const auto most = static_cast<std::int64_t>(kLanes);
    for (std::int64_t first = 0; first < total; first += most) {
      const auto lanes = static_cast<std::size_t>(std::min(most, total - first));
      machine_.tick();
      locate(first, lanes);
      load(first, lanes);
      if (!run_columns(*map_.code, map_.sources, lanes, map_.columns)) return first;
      const std::vector<Datum> before = can_fail_ ? run_.accumulators : std::vector<Datum>();
      if (!fold(first, lanes)) {
        run_.accumulators = before;
        return first;
      }
      const std::size_t reduced = run_.accumulators.size();
      for (std::size_t k = 0; k < run_.mapped.size(); ++k)
        store(map_.columns[map_.code->results[reduced + k]], run_.mapped[k], first, lanes);
    }
    return total;
  }

 private:
  struct Operator {
    ColumnLambda& lambda;
    std::optional<SingleOperator> single;
  };

  // What the lambda reads from outside.
  bool enter(ColumnLambda& lambda) {
    for (const auto& [column, v] : lambda.uniforms) lambda.columns[column].fill(machine_.slot(v));
    for (std::size_t k = 0; k < lambda.sources.size(); ++k) {
      const ColumnArray& array = lambda.code->arrays[k];
      const Array& from = array.input ? run_.streams.arrays[*array.input] : machine_.frame_->arrays[array.value.id];
      if (!is_readable(from)) return false;
      const std::size_t outer = array.input ? run_.streams.widths.size() : 0;
      lambda.sources[k] = {from.storage->bytes.data(),
                           nullptr,
                           from.offset,
                           {from.dims.begin() + static_cast<std::ptrdiff_t>(outer), from.dims.end()}};
    }
    return true;
  }

  // Whether the rows lie at equal distances in the order of the indices.
  bool is_linear(const Array& array) const {
    const std::vector<std::int64_t>& widths = run_.streams.widths;
    for (std::size_t d = 0; d + 1 < widths.size(); ++d)
      if (array.dims[d].stride != array.dims[d + 1].stride * widths[d + 1]) return false;
    return true;
  }

  std::int64_t stride(const Array& array) const { return array.dims[run_.streams.widths.size() - 1].stride; }

  // The indices of all lanes, if anything asks for them.
  void locate(std::int64_t first, std::size_t lanes) {
    const std::vector<std::int64_t>& widths = run_.streams.widths;
    const auto unused = [](std::size_t column) { return column == ColumnCode::kNone; };
    const bool all_linear = std::ranges::all_of(starts_, [](const auto& starts) { return starts.empty(); });
    if (all_linear && std::ranges::all_of(map_.code->indices, unused)) return;
    coordinates_.resize(widths.size(), std::vector<std::int64_t>(kLanes));
    std::vector<std::int64_t>& at = run_.streams.at;
    unflatten(first, widths, at);
    for (std::size_t k = 0; k < lanes; ++k) {
      for (std::size_t d = 0; d < widths.size(); ++d) coordinates_[d][k] = at[d];
      for (std::size_t d = widths.size(); d-- > 0;) {
        if (++at[d] < widths[d]) break;
        at[d] = 0;
      }
    }
    for (std::size_t d = 0; d < widths.size(); ++d) {
      if (unused(map_.code->indices[d])) continue;
      std::copy_n(coordinates_[d].begin(), lanes, map_.columns[map_.code->indices[d]].as<std::int64_t>());
    }
    for (std::size_t n = 0; n < starts_.size(); ++n) {
      const Array& array = run_.streams.arrays[n];
      for (std::size_t k = 0; k < lanes && !starts_[n].empty(); ++k) {
        starts_[n][k] = array.offset;
        for (std::size_t d = 0; d < widths.size(); ++d) starts_[n][k] += coordinates_[d][k] * array.dims[d].stride;
      }
    }
  }

  void load(std::int64_t first, std::size_t lanes) {
    for (std::size_t n = 0; n < starts_.size(); ++n) {
      const std::size_t param = map_.code->params[n];
      if (param == ColumnCode::kNone) continue;
      const Array& array = run_.streams.arrays[n];
      const std::byte* bytes = array.storage->bytes.data();
      if (starts_[n].empty())
        load_lanes(bytes, array.offset + first * stride(array), stride(array), lanes, map_.columns[param]);
      else
        load_lanes(bytes, starts_[n].data(), lanes, map_.columns[param]);
    }
    for (std::size_t k = 0; k < map_.sources.size(); ++k) {
      const std::optional<std::size_t> input = map_.code->arrays[k].input;
      if (!input) continue;
      std::vector<std::int64_t>& starts = row_starts_[*input];
      starts = starts_[*input];
      const Array& array = run_.streams.arrays[*input];
      for (std::size_t lane = 0; starts_[*input].empty() && lane < lanes; ++lane)
        starts.push_back(array.offset + (first + static_cast<std::int64_t>(lane)) * stride(array));
      map_.sources[k].starts = starts.data();
    }
  }

  void store(const Column& from, const Array& to, std::int64_t first, std::size_t lanes) {
    const auto width = static_cast<std::size_t>(byte_size(from.type()));
    const auto at = static_cast<std::size_t>(to.offset + first);
    std::copy_n(from.data(), lanes * width, to.storage->bytes.data() + at * width);
  }

  bool fold(std::int64_t first, std::size_t lanes) {
    std::size_t next = 0;
    for (std::size_t r = 0; r < operators_.size(); ++r) {
      const ReduceOp& reduce = run_.op.reduces[r];
      const std::size_t count = reduce.neutral.size();
      std::vector<Column> running;
      for (std::size_t k = 0; k < count && reduce.scan; ++k)
        running.emplace_back(run_.accumulators[next + k].scalar.type());
      if (const auto& single = operators_[r].single) {
        Scalar& sum = run_.accumulators[next].scalar;
        sum = fold_lanes(single->op, single->flipped, sum, map_.columns[map_.code->results[next]], lanes,
                         reduce.scan ? &running.front() : nullptr);
      } else if (!fold_one_by_one(operators_[r].lambda, next, count, lanes, running)) {
        return false;
      }
      for (std::size_t k = 0; k < running.size(); ++k) store(running[k], run_.scanned[next + k], first, lanes);
      next += count;
    }
    return true;
  }

  bool fold_one_by_one(ColumnLambda& op, std::size_t next, std::size_t count, std::size_t lanes,
                       std::vector<Column>& running) {
    const ColumnCode& code = *op.code;
    const auto give = [&](std::size_t param, const Scalar& x) {
      if (code.params[param] != ColumnCode::kNone) op.columns[code.params[param]].set(0, x);
    };
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      for (std::size_t k = 0; k < count; ++k) {
        give(k, run_.accumulators[next + k].scalar);
        give(count + k, map_.columns[map_.code->results[next + k]].get(lane));
      }
      if (!run_columns(code, op.sources, 1, op.columns)) return false;
      for (std::size_t k = 0; k < count; ++k) {
        run_.accumulators[next + k].scalar = op.columns[code.results[k]].get(0);
        if (!running.empty()) running[k].set(lane, run_.accumulators[next + k].scalar);
      }
    }
    return true;
  }

  Machine& machine_;
  ScremaRun& run_;
  ColumnLambda& map_;
  std::vector<Operator> operators_;
  bool can_fail_ = false;                          // an operator
  std::vector<std::vector<std::int64_t>> starts_;  // of each input's rows, by lane; empty: at equal distances
  std::unordered_map<std::size_t, std::vector<std::int64_t>> row_starts_;  // of inputs that are read by index
  std::vector<std::vector<std::int64_t>> coordinates_;                     // by width and lane
};

std::int64_t Machine::run_in_columns(ScremaRun& run, std::int64_t total) {
  if (module_.stage == Stage::memory || total < kFewest) return 0;
  ColumnRun columns(*this, run);
  return columns.prepare() ? columns.run(total) : 0;
}

}  // namespace apl::interpreter
