#include "tessera/runtime/internal/reduce.hpp"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/codelets/cast.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/codelets/reduce.hpp"
#include "tessera/runtime/internal/add_up.hpp"

namespace tessera::runtime::internal {
namespace {

// Adds partial sums of 16 bits to one of their type.
template <class T>
void add_up_narrow(std::span<const std::byte* const> sources, std::int64_t n, std::byte* result) {
  auto* out = reinterpret_cast<T*>(result);
  for (std::int64_t i = 0; i < n; ++i) {
    T sum = reinterpret_cast<const T*>(sources[0])[i];
    for (std::size_t s = 1; s < sources.size(); ++s)
      sum = T(float(sum) + float(reinterpret_cast<const T*>(sources[s])[i]));
    out[i] = sum;
  }
}

// Sums that are cast afterwards are computed in a buffer of floats, piece by piece.
template <class Out>
void add_up_floats(std::span<const std::byte* const> sources, std::int64_t n, std::byte* result) {
  auto* out = reinterpret_cast<Out*>(result);
  if constexpr (std::is_same_v<Out, float>) {
    codelets::add_floats({sources, 0, n}, out);
  } else {
    constexpr std::int64_t kPiece = 1024;
    std::array<float, kPiece> piece;
    for (std::int64_t first = 0; first < n; first += kPiece) {
      const std::int64_t count = std::min(kPiece, n - first);
      codelets::add_floats({sources, first, count}, piece.data());
      codelets::cast_floats(piece.data(), count, out + first);
    }
  }
}

template <class T>
void move_up(std::byte* from, std::int64_t n, std::byte* to) {
  auto* partials = reinterpret_cast<T*>(from);
  auto* sums = reinterpret_cast<T*>(to);
  if constexpr (std::is_same_v<T, float>)
    return codelets::add_and_clear(partials, n, sums);
  else
    for (std::int64_t i = 0; i < n; ++i) {
      sums[i] = T(float(sums[i]) + float(partials[i]));
      partials[i] = T();
    }
}

}  // namespace

MoveUp move_up_for(DataType partials) {
  return with_type(partials, [](auto zero) -> MoveUp { return move_up<decltype(zero)>; });
}

AddUp add_up_for(DataType partials, DataType result) {
  if (partials == DataType::Float)
    return with_type(result, [](auto zero) -> AddUp { return add_up_floats<decltype(zero)>; });
  TESSERA_ASSERT(partials == result);
  return partials == DataType::Half ? add_up_narrow<Half> : add_up_narrow<BFloat16>;
}

void Reduction::declare(TileProgram& program, BufferId partials,
                        std::vector<ReductionColumn> columns) {
  partial_buffer_ = partials;
  if (depth_ > 1) others_buffer_ = program.add_buffer("partials of others");
  if (has_work()) result_buffer_ = program.add_buffer("result");
  add_jobs(program, columns);
  std::vector<BufferId> reads{partials};
  if (depth_ > 1) {
    program.exchange(Phase::Reduce, {{partials}, {others_buffer_}}, gathers(columns), {},
                     only_charges_ ? Exchanged::CostAlone : Exchanged::Data);
    reads.push_back(others_buffer_);
  }
  if (!has_work()) return;
  program.compute(Phase::Reduce, {reads, {result_buffer_}}, tiles_,
                  [this, &program](const device::Tile& tile) {
                    Job& job = jobs_[std::size_t(job_of_tile_[std::size_t(tile.id().value)])];
                    if (!only_charges_) add_up(tile, job);
                    return cycles(program.engine(), job);
                  });
}

void Reduction::add_jobs(TileProgram& program, const std::vector<ReductionColumn>& columns) {
  for (const ReductionColumn& column : columns)
    for (std::size_t i = 0; i < column.tiles.size(); ++i) add_job(program, column, i);
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const auto tile = std::size_t(jobs_[i].tile.value);
    if (tile >= job_of_tile_.size()) job_of_tile_.resize(tile + 1);
    job_of_tile_[tile] = static_cast<std::int32_t>(i);
    if (has_work()) tiles_.push_back(jobs_[i].tile);
  }
}

void Reduction::add_job(TileProgram& program, const ReductionColumn& column, std::size_t i) {
  const auto parts = static_cast<std::int64_t>(column.tiles.size());
  TESSERA_ASSERT(parts == depth_);
  Job job{.tile = column.tiles[i],
          .elements = share_of(column.elements, 1, parts, std::int64_t(i)),
          .sources = {},
          .own = i,
          .result = column.partials[i],
          .views = std::vector<const std::byte*>(column.tiles.size())};
  const std::int64_t elements = job.elements.size();
  if (elements == 0) return;
  const auto add_other = [&](std::int64_t sources) {
    return program.add_slot(others_buffer_, job.tile, elements, bytes_of(partials_),
                            device::SlotKind::Landing, sources);
  };
  device::SlotId others;  // the memory of all other sources, if nothing arrives there
  if (only_charges_ && parts > 1) others = add_other(parts - 1);
  for (std::size_t s = 0; s < column.tiles.size(); ++s)
    job.sources.push_back(s == i ? column.partials[i] : only_charges_ ? others : add_other(1));
  if (has_work())
    job.result =
        program.add_slot(result_buffer_, job.tile, elements, bytes_of(result_),
                         only_charges_ ? device::SlotKind::Landing : device::SlotKind::Owned);
  jobs_.push_back(std::move(job));
}

std::vector<device::Gather> Reduction::gathers(const std::vector<ReductionColumn>& columns) const {
  std::vector<device::Gather> all;
  std::size_t next = 0;
  for (const ReductionColumn& column : columns)
    for (std::size_t i = 0; i < column.tiles.size(); ++i) {
      if (next == jobs_.size() || jobs_[next].tile != column.tiles[i]) continue;  // empty share
      const Job& job = jobs_[next++];
      for (std::size_t s = 0; s < job.sources.size(); ++s)
        if (s != job.own) all.push_back({{{column.partials[s], job.elements}}, {job.sources[s]}});
    }
  return all;
}

void Reduction::give_slots(TensorHome& home) const {
  home.buffer = result();
  TESSERA_ASSERT(jobs_.size() == home.shares.size());
  for (HomeShare& share : home.shares) {
    const Job& job = jobs_[std::size_t(job_of_tile_[std::size_t(share.tile.value)])];
    TESSERA_ASSERT(job.tile == share.tile && job.elements == share.elements);
    share.slot = job.result;
  }
}

void Reduction::add_up(const device::Tile& tile, Job& job) const {
  for (std::size_t s = 0; s < job.sources.size(); ++s) {
    const device::ByteRows view = tile.view(job.sources[s]);
    job.views[s] = s == job.own ? view.sub(job.elements).data : view.data;
  }
  add_up_for(partials_, result_)(job.views, job.elements.size(), tile.view(job.result).data);
}

Cycles Reduction::cycles(const device::Engine& engine, const Job& job) const {
  const std::int64_t n = job.elements.size(), workers = engine.machine().workers;
  return depth_ == 1 ? codelets::cast_cycles(n, partials_, result_, workers)
                     : codelets::reduce_cycles(n, depth_, partials_, result_, workers);
}

}  // namespace tessera::runtime::internal
