#include "tessera/runtime/internal/reduce.hpp"

#include <algorithm>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"

namespace tessera::runtime::internal {
namespace {

// result[i] = cast(sum over sources of source[i]), in order, rounded to the partials' type.
template <class Sum, class Out>
void add_up(std::span<const std::byte* const> sources, std::int64_t n, std::byte* result) {
  auto* out = reinterpret_cast<Out*>(result);
  for (std::int64_t i = 0; i < n; ++i) {
    Sum sum = reinterpret_cast<const Sum*>(sources[0])[i];
    for (std::size_t s = 1; s < sources.size(); ++s)
      sum = Sum(float(sum) + float(reinterpret_cast<const Sum*>(sources[s])[i]));
    out[i] = Out(float(sum));
  }
}

using AddUp = void (*)(std::span<const std::byte* const>, std::int64_t, std::byte*);
AddUp add_up_for(DataType partials, DataType result) {
  if (partials == DataType::Half) return add_up<Half, Half>;
  TESSERA_ASSERT(partials == DataType::Float);
  return with_type(result, [](auto zero) -> AddUp { return add_up<float, decltype(zero)>; });
}

}  // namespace

Reduction::Reduction(device::Engine& engine, std::vector<ReductionColumn> columns,
                     DataType partials, DataType result, Range phases)
    : partials_(partials), result_(result), columns_(std::move(columns)) {
  for (const ReductionColumn& column : columns_)
    for (std::size_t i = 0; i < column.tiles.size(); ++i) add_job(engine, column, i, phases);
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const auto tile = std::size_t(jobs_[i].tile.value);
    if (tile >= job_of_tile_.size()) job_of_tile_.resize(tile + 1);
    job_of_tile_[tile] = static_cast<std::int32_t>(i);
    if (has_work(jobs_[i])) tiles_.push_back(jobs_[i].tile);
    shares_.push_back({jobs_[i].tile, jobs_[i].result, jobs_[i].elements});
  }
}

void Reduction::add_job(device::Engine& engine, const ReductionColumn& column, std::size_t i,
                        Range phases) {
  const auto parts = static_cast<std::int64_t>(column.tiles.size());
  Job job{.tile = column.tiles[i],
          .elements = share_of(column.elements, 1, parts, std::int64_t(i)),
          .sources = {},
          .own = i,
          .result = column.partials[i]};
  if (job.elements.size() == 0) return;
  device::SlotSpec spec{.tile = job.tile,
                        .name = "partials of others",
                        .rows = job.elements.size(),
                        .row_bytes = bytes_of(partials_),
                        .kind = device::SlotKind::Landing,
                        .first_phase = int(phases.begin),
                        .last_phase = int(phases.end)};
  for (std::size_t s = 0; s < column.tiles.size(); ++s)
    job.sources.push_back(s == i ? column.partials[i] : engine.add_slot(spec));
  if (has_work(job)) {
    spec.name = "result";
    spec.row_bytes = bytes_of(result_);
    spec.kind = device::SlotKind::Owned;
    job.result = engine.add_slot(spec);
  }
  jobs_.push_back(std::move(job));
}

void Reduction::prepare(const device::Engine& engine) {
  std::vector<device::Gather> gathers;
  std::size_t next = 0;
  for (const ReductionColumn& column : columns_)
    for (std::size_t i = 0; i < column.tiles.size(); ++i) {
      if (next == jobs_.size() || jobs_[next].tile != column.tiles[i]) continue;  // empty share
      const Job& job = jobs_[next++];
      for (std::size_t s = 0; s < job.sources.size(); ++s)
        if (s != job.own)
          gathers.push_back({{{column.partials[s], job.elements}}, {job.sources[s]}});
    }
  exchange_ = engine.prepare(std::move(gathers));
}

Cycles Reduction::reduce(const device::Engine& engine, const device::Tile& tile,
                         const Job& job) const {
  std::vector<const std::byte*> sources;
  for (std::size_t s = 0; s < job.sources.size(); ++s) {
    const device::ByteRows view = tile.view(job.sources[s]);
    sources.push_back(s == job.own ? view.sub(job.elements).data : view.data);
  }
  const std::int64_t n = job.elements.size();
  add_up_for(partials_, result_)(sources, n, tile.view(job.result).data);
  const auto depth = static_cast<std::int64_t>(sources.size());
  const std::int64_t workers = engine.machine().workers;
  return depth == 1 ? codelets::cast_cycles(n, partials_, result_, workers)
                    : codelets::reduce_cycles(n, depth, partials_, result_, workers);
}

void Reduction::run(device::Engine& engine, std::string_view phase) const {
  if (!exchange_.gathers.empty()) engine.exchange(phase, exchange_);
  if (tiles_.empty()) return;
  engine.compute(phase, tiles_, [&](const device::Tile& tile) {
    return reduce(engine, tile, jobs_[std::size_t(job_of_tile_[std::size_t(tile.id().value)])]);
  });
}

}  // namespace tessera::runtime::internal
