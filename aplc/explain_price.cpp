#include "aplc/explain_price.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "ir/team.h"
#include "ir/walk.h"

namespace aplc {
namespace {

using apl::Operand;
using apl::Poly;
using apl::Value;

// A step of a thread that waits for memory, in cycles, with several loads under way.
constexpr double kStepCycles = 30;
// An operation of a tile's product, or on an element of a block's own, of which many do not depend on each other: as
// long as two warps take turns at a scheduler.
constexpr double kProductCycles = 2;

class Pricer {
 public:
  Pricer(const apl::Function& function, const apl::Layouts& layouts, const apl_device& device, KnownScalars& known)
      : function_(function), layouts_(layouts), device_(device), known_(known) {}

  KernelPrice run(const apl::Stm& stm) {
    price_.seconds = seconds_of(stm);
    return price_;
  }

 private:
  struct Work {
    double steps = 0;               // of one thread, one after the other
    double operations = 0;          // of one thread
    double products = 0;            // those of its share of tiles' products, and elements of its block's own arrays
    std::map<Value, double> reads;  // elements of each array by one thread
    double writes = 0;              // bytes by one thread
    std::map<Value, Value> bases;   // arrays that rows are of
  };

  static double bytes_of(const apl::Type& type) { return std::max(1, apl::byte_size(type.element)); }

  std::optional<double> elements(const apl::Type& type) const {
    double all = 1;
    for (const Poly& size : type.shape) {
      const auto n = known_.number(size);
      if (!n) return std::nullopt;
      all *= *n;
    }
    return all;
  }

  void add(const apl::Body& body, double times, Work& work) {
    for (const apl::Stm& stm : body.stms) add(stm, times, work);
  }

  void add(const apl::Stm& stm, double times, Work& work) {
    const auto nested = [&](double factor) {
      apl::for_each_body(stm.op, [&](const apl::BodyPtr& inner) { add(*inner, times * factor, work); });
    };
    // The array that a row is of: an element of a row is one of the array's.
    const auto base_of = [&](Value array) {
      const auto row = work.bases.find(array);
      return row == work.bases.end() ? array : row->second;
    };
    const auto width = [&](const std::vector<Poly>& widths) {
      double all = 1;
      for (const Poly& w : widths) {
        const auto n = known_.number(w);
        price_.unknown_work = price_.unknown_work || !n;
        all *= n.value_or(1);
      }
      return all;
    };
    known_.learn(stm);
    if (const auto* index = apl::get_if<apl::Index>(stm)) {
      const bool element =
          std::none_of(index->dims.begin(), index->dims.end(), [](const auto& d) { return d.is_slice(); });
      if (element && function_.type(stm.pattern.front()).is_scalar()) {
        if (outside_ && !outside_->contains(base_of(index->array))) {
          work.products += times;  // in registers or shared memory
        } else {
          work.reads[base_of(index->array)] += times;
          work.steps += times;
        }
      } else if (function_.type(stm.pattern.front()).is_array()) {
        work.bases[stm.pattern.front()] = base_of(index->array);
      }
    } else if (const auto* update = apl::get_if<apl::Update>(stm)) {
      work.writes += times * bytes_of(function_.type(update->array));
    } else if (const auto* loop = apl::get_if<apl::Loop>(stm)) {
      const auto rounds = loop->index ? known_.number(loop->bound) : std::nullopt;
      price_.unknown_work = price_.unknown_work || !rounds;
      if (loop->index) known_.know_index(loop->index, std::max(0.0, rounds.value_or(1) - 1) / 2);
      nested(rounds.value_or(1));
    } else if (const auto* soac = apl::get_if<apl::Screma>(stm)) {
      const double n = width(soac->widths);
      for (const Value input : soac->inputs) {
        if (outside_ && !outside_->contains(base_of(input))) {
          work.products += times * n;
          continue;
        }
        work.reads[base_of(input)] += times * n;
        work.steps += times * n;
      }
      nested(n);
    } else if (const auto* scatter = apl::get_if<apl::Scatter>(stm)) {
      const double n = width(scatter->widths);
      for (const Value input : scatter->inputs) work.reads[input] += times * n;
      for (const Value target : scatter->targets) work.writes += times * n * bytes_of(function_.type(target));
      work.steps += times * n;
      nested(n);
    } else if (const auto* seg = apl::get_if<apl::SegOp>(stm)) {
      // Inside of a block: its threads share the work.
      std::vector<Poly> bounds;
      for (const apl::SegDim& dim : seg->space) bounds.push_back(dim.bound);
      Work inside;
      add(*seg->body, 1, inside);
      const double n = width(bounds);
      work.operations += times * n * inside.operations;
      work.steps += times * inside.steps;
      work.products += times * inside.products;
      for (const auto& [array, count] : inside.reads) work.reads[array] += times * n * count;
      work.writes += times * n * inside.writes;
    } else if (const auto* copy = apl::get_if<apl::CopyTile>(stm)) {
      const double elements = times * width(copy->window.shape());
      work.reads[copy->source] += elements;
      for (const apl::TileRead& read : copy->also)
        if (read.array) work.reads[*read.array] += elements;
      if (copy->map) add(*copy->map->body, elements, work);
    } else if (const auto* contract = apl::get_if<apl::TileContract>(stm)) {
      // The last tile of a dim may have fewer steps: counted as whole ones of a usual tile.
      constexpr double kUsual = 64;
      double depth = 1, registers = 1, points = 1;
      for (const Poly& steps : contract->depth) depth *= known_.number(steps).value_or(kUsual);
      for (const apl::TileDim& dim : contract->space) {
        registers *= known_.number(dim.reg).value_or(1);
        points *= known_.number(dim.tile * dim.reg).value_or(1);
      }
      Work each;
      add(*contract->map.body, 1, each);
      add(*contract->reduce.op.body, 1, each);
      work.operations += times * depth * points * each.operations;
      work.products += times * depth * registers * each.operations;
    } else if (apl::is_branch(stm.op)) {
      nested(0.5);
    } else if (copies(stm)) {
      add_copy(stm.pattern.front(), times, work);
    } else {
      if (apl::get_if<apl::Binary>(stm) || apl::get_if<apl::Unary>(stm) || apl::get_if<apl::Compare>(stm) ||
          apl::get_if<apl::Convert>(stm))
        work.operations += times;
      nested(1);
    }
  }

  // Whether the thread makes an array element by element: it copies one, or a reshape that no index function says.
  bool copies(const apl::Stm& stm) const {
    if (apl::get_if<apl::Copy>(stm) || apl::get_if<apl::Manifest>(stm) || apl::get_if<apl::Replicate>(stm) ||
        apl::get_if<apl::Iota>(stm))
      return function_.type(stm.pattern.front()).is_array();
    const auto* reshape = apl::get_if<apl::Reshape>(stm);
    return reshape != nullptr && layouts_.find(reshape->array) != nullptr &&
           layouts_.find(stm.pattern.front()) == nullptr;
  }

  void add_copy(Value array, double times, Work& work) const {
    const double n = elements(function_.type(array)).value_or(1);
    work.steps += times * n;
    work.writes += times * n * bytes_of(function_.type(array));
  }

  // Rows that a kernel returns and nothing in it makes: each thread copies its own.
  void add_returned_views(const apl::SegOp& kernel, Work& work) const {
    for (const Operand& result : kernel.body->results) {
      if (!result.is_value() || !function_.type(result.value()).is_array()) continue;
      const apl::Stm* made = apl::defining_stm(*kernel.body, result.value());
      const bool is_view = made == nullptr || apl::get_if<apl::Index>(*made) || apl::get_if<apl::Rearrange>(*made) ||
                           apl::get_if<apl::Reshape>(*made);
      if (is_view) work.steps += elements(function_.type(result.value())).value_or(1);
    }
  }

  // Threads of a team share what an index has to do.
  static void share(double team, double& threads, Work& work) {
    threads *= team;
    work.steps /= team;
    work.operations /= team;
    for (auto& [array, count] : work.reads) count /= team;
  }

  std::optional<double> seconds_of(const apl::Stm& stm) {
    double threads = 1;
    Work work;
    if (const auto* seg = apl::get_if<apl::SegOp>(stm)) {
      for (const apl::SegDim& dim : seg->space) {
        const auto n = known_.number(dim.bound);
        if (!n) return std::nullopt;
        threads *= *n;
        known_.know_index(dim.index,
                          std::max(0.0, *n - 1) / 2);  // what differs from thread to thread has its mean there
      }
      if (seg->level == apl::SegLevel::block) outside_ = apl::free_values(stm.op, function_.values);
      add(*seg->body, 1, work);
      outside_.reset();
      if (seg->level == apl::SegLevel::thread) add_returned_views(*seg, work);
      const double blocks = seg->blocks ? known_.number(*seg->blocks).value_or(1) : 1;
      if (seg->team) share(blocks > 1 ? blocks * apl::kMostTeam : known_.number(*seg->team).value_or(1), threads, work);
    } else {
      // A copy, or a scatter whose indices are its threads.
      const std::vector<Poly>* widths = nullptr;
      if (const auto* scatter = apl::get_if<apl::Scatter>(stm)) widths = &scatter->widths;
      if (const auto* soac = apl::get_if<apl::Screma>(stm)) widths = &soac->widths;
      if (widths) {
        for (const Poly& width : *widths) {
          const auto n = known_.number(width);
          if (!n) return std::nullopt;
          threads *= *n;
        }
        apl::Stm one = stm;
        if (auto* scatter = std::get_if<apl::Scatter>(&one.op)) scatter->widths.clear();
        if (auto* soac = std::get_if<apl::Screma>(&one.op)) soac->widths.clear();
        add(one, 1, work);
      } else {
        const auto n = elements(function_.type(stm.pattern.front()));
        if (!n) return std::nullopt;
        threads = *n;
        work.steps = 1;
        apl::for_each_use(stm.op, [&](Value v) {
          if (function_.type(v).is_array()) work.reads[v] += 1;
        });
      }
    }
    double bytes = threads * work.writes;
    for (const Value result : stm.pattern)
      if (const auto n = elements(function_.type(result)); n && function_.type(result).is_array())
        bytes += *n * bytes_of(function_.type(result));
    for (const auto& [array, count] : work.reads) {
      const apl::Type& type = function_.type(array);
      const auto whole = elements(type);
      bytes += std::min(threads * count, whole.value_or(threads * count)) * bytes_of(type);
    }
    price_.bytes = bytes;
    price_.operations = threads * work.operations;
    const double clock = device_.clock_ghz * 1e9;
    const bool is_gpu = device_.warp > 0;
    const double in_flight = is_gpu ? static_cast<double>(device_.multiprocessors) * device_.multiprocessor_threads
                                    : static_cast<double>(device_.multiprocessors);
    const double bandwidth =
        (bytes < static_cast<double>(device_.cache_bytes) ? device_.cache_gbs : device_.memory_gbs) * 1e9;
    const double arithmetic = threads * work.operations / (device_.multiprocessors * device_.fmas_per_clock * clock);
    // Threads one after the other on what runs at a time; a core of a CPU has its steps in cache.
    const double waves = std::max(1.0, std::ceil(threads / std::max(1.0, in_flight)));
    const double cycles =
        is_gpu ? kStepCycles * work.steps + kProductCycles * work.products : work.operations + work.steps;
    const double chain = cycles * (is_gpu ? waves : threads / std::max(1.0, in_flight)) / clock;
    return std::max({bytes / bandwidth, arithmetic, threads < 1 ? 0.0 : chain}) + device_.launch_us * 1e-6;
  }

  const apl::Function& function_;
  const apl::Layouts& layouts_;
  const apl_device& device_;
  KnownScalars& known_;
  std::optional<std::set<Value>> outside_;  // what the kernel of blocks reads: its own arrays are near to its threads
  KernelPrice price_;
};

}  // namespace

std::optional<double> KnownScalars::number(const Poly& poly) const {
  const bool all = [&] {
    bool fine = true;
    poly.for_each_symbol([&](Value v) { fine = fine && known_.contains(v); });
    return fine;
  }();
  if (!all) return std::nullopt;
  const auto result = poly.evaluate([&](Value v) { return known_.at(v).as_int(); });
  return result ? std::optional<double>(static_cast<double>(*result)) : std::nullopt;
}

std::optional<apl::Scalar> KnownScalars::scalar(const Operand& operand) const {
  if (operand.is_constant()) return operand.constant();
  const auto found = known_.find(operand.value());
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

void KnownScalars::learn(const apl::Stm& stm) {
  std::optional<apl::Scalar> value;
  if (const auto* size = apl::get_if<apl::SizeExpr>(stm)) {
    if (const auto n = number(size->value))
      value = apl::Scalar::integer(apl::ScalarType::i64, static_cast<std::int64_t>(*n));
  } else if (const auto* parameter = apl::get_if<apl::GetSize>(stm)) {
    const auto given = parameters_.find(parameter->name);
    value = apl::Scalar::integer(apl::ScalarType::i64,
                                 given == parameters_.end() ? parameter->default_value : given->second);
  } else if (const auto* binary = apl::get_if<apl::Binary>(stm)) {
    const auto x = scalar(binary->x), y = scalar(binary->y);
    if (x && y) value = apl::evaluate(binary->op, *x, *y);
  } else if (const auto* compare = apl::get_if<apl::Compare>(stm)) {
    const auto x = scalar(compare->x), y = scalar(compare->y);
    if (x && y) value = apl::evaluate(compare->op, *x, *y);
  } else if (const auto* unary = apl::get_if<apl::Unary>(stm)) {
    if (const auto x = scalar(unary->x)) value = apl::evaluate(unary->op, *x);
  } else if (const auto* use = apl::get_if<apl::Use>(stm)) {
    value = scalar(use->x);
  }
  if (value) known_[stm.pattern.front()] = *value;
}

void KnownScalars::know_index(Value index, double at) {
  know(index, apl::Scalar::integer(apl::ScalarType::i64, static_cast<std::int64_t>(at)));
}

KernelPrice kernel_price(const apl::Stm& kernel, const apl::Function& function, const apl::Layouts& layouts,
                         const apl_device& device, KnownScalars& known) {
  return Pricer(function, layouts, device, known).run(kernel);
}

}  // namespace aplc
