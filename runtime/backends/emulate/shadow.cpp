#include "runtime/backends/emulate/shadow.h"

#include <algorithm>
#include <bit>

namespace apl::emulate {

Stamp Moment::stamp(bool is_defined, bool is_fold) const {
  constexpr int kMaxLine = (1 << 19) - 1;
  return {now, is_defined, static_cast<std::uint64_t>(thread), is_fold,
          static_cast<std::uint64_t>(std::min(line, kMaxLine))};
}

void Shadow::reset(std::int64_t bytes, bool is_defined) {
  bytes_ = bytes;
  is_defined_ = is_defined;
  granules_.clear();
  others_.clear();
}

// The largest granule, up to 16 bytes, that divides both.
int Shadow::common_shift(std::int64_t offset, std::int64_t size) {
  return std::countr_zero(static_cast<std::uint64_t>(offset | size | 16));
}

void Shadow::refine(int shift) {
  auto count = [&](int s) { return static_cast<std::size_t>((bytes_ + (std::int64_t{1} << s) - 1) >> s); };
  if (granules_.empty()) {
    shift_ = shift;
    Granule start;
    if (is_defined_) start.writer = kHost;
    granules_.assign(count(shift), start);
  } else if (shift < shift_) {
    std::vector<Granule> finer(count(shift));
    for (std::size_t i = 0; i < finer.size(); ++i) finer[i] = granules_[i >> (shift_ - shift)];
    granules_ = std::move(finer);
    std::unordered_map<std::size_t, Others> others;
    for (const auto& [at, stamps] : others_)
      for (std::size_t k = 0; k < std::size_t{1} << (shift_ - shift); ++k)
        others.emplace((at << (shift_ - shift)) + k, stamps);
    others_ = std::move(others);
    shift_ = shift;
  }
}

std::optional<Conflict> Shadow::touch(Granule& granule, const Moment& moment, Use use) {
  const bool ordered = (use == Use::fold || use == Use::repeat) && granule.writer.is_fold;
  if (!ordered && moment.races_with(granule.writer)) return Conflict{FaultKind::race, granule.writer, true};
  if (use != Use::read) {
    for (Stamp reader : {granule.first_reader, granule.reader, granule.other_reader, granule.far_reader})
      if (moment.races_with(reader)) return Conflict{FaultKind::race, reader, false};
    if (use == Use::write || use == Use::begin_copy) {
      granule.writer = moment.stamp(use == Use::write);
      return std::nullopt;
    }
    if (use == Use::fold && !granule.writer.is_defined) return Conflict{FaultKind::undefined, granule.writer, true};
    // A plain write since the block's barrier stays on record: other threads' steps race with it.
    if (!moment.is_recent(granule.writer) || granule.writer.is_fold) granule.writer = moment.stamp(true, true);
    return std::nullopt;
  }
  if (!granule.writer.is_defined)
    return Conflict{granule.writer.interval == 0 ? FaultKind::undefined : FaultKind::copy_pending, granule.writer,
                    true};
  const Stamp now = moment.stamp(true);
  if (granule.first_reader.interval < moment.launch) granule.first_reader = now;
  if (!moment.is_recent(granule.reader)) {
    granule.reader = now;
    granule.other_reader = granule.far_reader = kNever;
  } else if (!moment.same_warp(granule.reader)) {
    granule.far_reader = now;
  } else if (granule.reader.interval != now.interval) {
    granule.reader = now;
    granule.other_reader = kNever;
  } else if (granule.reader.thread != now.thread) {
    granule.other_reader = now;
  }
  return std::nullopt;
}

std::optional<Conflict> Shadow::touch_together(std::size_t at, const Moment& moment, Use use) {
  Granule& granule = granules_[at];
  if (launch_ != moment.launch) others_.clear();
  launch_ = moment.launch;
  const bool writes = is_write(use), atomic = use == Use::fold || use == Use::look || use == Use::post;
  const bool reads = use == Use::read || use == Use::look || use == Use::fold;
  const auto unordered = [&](Stamp other, bool other_writes) {
    const bool steps = other.is_fold && (atomic || (use == Use::repeat && other_writes));
    return !steps && moment.races_with(other);
  };
  Stamp* const readers[] = {&granule.first_reader, &granule.reader, &granule.other_reader, &granule.far_reader};
  const auto more = others_.empty() ? others_.end() : others_.find(at);
  if (unordered(granule.writer, true)) return Conflict{FaultKind::race, granule.writer, true};
  if (more != others_.end())
    for (const Stamp other : more->second.writers)
      if (unordered(other, true)) return Conflict{FaultKind::race, other, true};
  if (writes) {
    for (const Stamp* reader : readers)
      if (unordered(*reader, false)) return Conflict{FaultKind::race, *reader, false};
    if (more != others_.end())
      for (const Stamp other : more->second.readers)
        if (unordered(other, false)) return Conflict{FaultKind::race, other, false};
  }
  if (reads && !granule.writer.is_defined)
    return Conflict{granule.writer.interval == 0 ? FaultKind::undefined : FaultKind::copy_pending, granule.writer,
                    true};
  // What came before is covered by this access, but for what an atomic one does not race with and a plain one would.
  const auto covered = [&](Stamp other) {
    return other.interval < moment.launch || (!moment.races_with(other) && (!atomic || other.is_fold));
  };
  if (!writes) {
    const Stamp now = moment.stamp(false, atomic);
    const auto free = std::ranges::find_if(readers, [&](const Stamp* reader) { return covered(*reader); });
    if (free != std::end(readers)) {
      **free = now;
      return std::nullopt;
    }
    Others& others = more != others_.end() ? more->second : others_[at];
    if (others.readers.size() >= others.enough) {
      std::erase_if(others.readers, covered);
      others.enough = std::max(kFewReaders, 2 * others.readers.size());
    }
    others.readers.push_back(now);
    return std::nullopt;
  }
  for (Stamp* reader : readers)
    if (covered(*reader)) *reader = kNever;
  Others kept;
  if (more != others_.end()) {
    kept = std::move(more->second);
    std::erase_if(kept.readers, covered);
    std::erase_if(kept.writers, covered);
    others_.erase(more);
  }
  if (granule.writer.is_defined && !covered(granule.writer)) kept.writers.push_back(granule.writer);
  granule.writer = moment.stamp(use != Use::begin_copy, use != Use::write && use != Use::begin_copy);
  if (!kept.readers.empty() || !kept.writers.empty()) others_.emplace(at, std::move(kept));
  return std::nullopt;
}

std::optional<Conflict> Shadow::access(const Moment& moment, std::int64_t offset, int size, Use use) {
  const int shift = std::countr_zero(static_cast<unsigned>(size));
  if (granules_.empty() || shift < shift_) refine(shift);
  const auto first = static_cast<std::size_t>(offset >> shift_);
  const auto last = static_cast<std::size_t>((offset + size - 1) >> shift_);
  for (std::size_t i = first; i <= last; ++i)
    if (auto conflict = moment.order == nullptr ? touch(granules_[i], moment, use) : touch_together(i, moment, use))
      return conflict;
  return std::nullopt;
}

void Shadow::define(std::int64_t offset, std::int64_t size) {
  if (size <= 0) return;
  if (offset == 0 && size == bytes_) return reset(bytes_, true);
  if (granules_.empty() && is_defined_) return;
  refine(common_shift(offset, size));
  for (std::int64_t i = offset >> shift_; i < (offset + size) >> shift_; ++i)
    granules_[static_cast<std::size_t>(i)].writer = kHost;
}

void Shadow::copy(std::int64_t offset, const Shadow& from, std::int64_t from_offset, std::int64_t size) {
  if (!from.first_undefined(from_offset, size)) return define(offset, size);
  const int shift = common_shift(offset | from_offset, size);
  refine(from.granules_.empty() ? shift : std::min(shift, from.shift_));
  for (std::int64_t at = 0; at < size; at += std::int64_t{1} << shift_) {
    const bool is_defined = !from.first_undefined(from_offset + at, std::int64_t{1} << shift_);
    granules_[static_cast<std::size_t>((offset + at) >> shift_)].writer = is_defined ? kHost : kNever;
  }
}

std::optional<std::int64_t> Shadow::first_undefined(std::int64_t offset, std::int64_t size) const {
  if (size <= 0) return std::nullopt;
  if (granules_.empty()) return is_defined_ ? std::nullopt : std::optional(offset);
  for (std::int64_t i = offset >> shift_; i <= (offset + size - 1) >> shift_; ++i)
    if (!granules_[static_cast<std::size_t>(i)].writer.is_defined) return std::max(offset, i << shift_);
  return std::nullopt;
}

}  // namespace apl::emulate
