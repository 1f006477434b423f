#include "tessera/runtime/internal/static_sums.hpp"

#include <algorithm>
#include <utility>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/runtime/internal/add_up.hpp"

namespace tessera::runtime::internal {

StaticSums::StaticSums(std::span<const StaticRun> runs, DataType type)
    : runs_(runs), type_(type), has_work_(std::ranges::any_of(runs, [](const StaticRun& run) {
        return run.pieces.size() > 1;
      })) {}

void StaticSums::declare(BoundProgram& program, device::Engine& engine, BufferId partials) {
  partial_buffer_ = partials;
  if (!has_work()) return;
  others_buffer_ = program.add_buffer("partials of others");
  exchange_node_ = program.step(NodeKind::Exchange, Phase::Reduce, {{partials}, {others_buffer_}},
                                [&] { engine.exchange(Phase::Reduce, exchange_); });
  result_buffer_ = program.add_buffer("result");
  compute_node_ = program.step(
      NodeKind::Compute, Phase::Reduce, {{partials, others_buffer_}, {result_buffer_}}, [&] {
        engine.compute(Phase::Reduce, tiles_, [&](const device::Tile& tile) {
          return reduce(engine, tile,
                        jobs_[std::size_t(job_of_tile_[std::size_t(tile.id().value)])]);
        });
      });
}

std::vector<BufferId> StaticSums::results() const {
  if (!has_work()) return {partial_buffer_};
  return {partial_buffer_, result_buffer_};
}

void StaticSums::add_slots(BoundProgram& program, device::Engine& engine,
                           std::span<const StaticWork> works,
                           std::span<const device::SlotId> partials) {
  partials_.assign(partials.begin(), partials.end());
  std::vector<std::int32_t> job_of_work(works.size(), -1);
  for (const StaticRun& run : runs_)
    for (std::size_t i = 0; run.pieces.size() > 1 && i < run.pieces.size(); ++i) {
      const Range elements = run.share(i);
      if (elements.size() == 0) continue;
      std::int32_t& index = job_of_work[std::size_t(run.pieces[i].work)];
      if (index < 0) {
        index = std::int32_t(jobs_.size());
        Job& job = jobs_.emplace_back();
        job.tile = works[std::size_t(run.pieces[i].work)].tile;
        job.partials = partials[std::size_t(run.pieces[i].work)];
      }
      Job& job = jobs_[std::size_t(index)];
      job.parts.push_back({&run, i, elements, job.operands - job.elements, job.elements});
      job.elements += elements.size();
      job.operands += elements.size() * std::ssize(run.pieces);
      job.views.resize(std::max(job.views.size(), run.pieces.size()));
    }
  std::ranges::sort(jobs_, {}, &Job::tile);
  job_of_tile_.assign(std::size_t(engine.machine().tiles), -1);
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    job_of_tile_[std::size_t(jobs_[i].tile.value)] = std::int32_t(i);
    tiles_.push_back(jobs_[i].tile);
  }
  add_job_slots(program, engine);
  add_shares(partials);
}

void StaticSums::add_job_slots(BoundProgram& program, device::Engine& engine) {
  const std::int64_t bytes = bytes_of(type_);
  for (Job& job : jobs_) {
    job.others = engine.add_slot(program.slot(others_buffer_, job.tile, 1,
                                              (job.operands - job.elements) * bytes,
                                              device::SlotKind::Owned));
    job.result = engine.add_slot(
        program.slot(result_buffer_, job.tile, 1, job.elements * bytes, device::SlotKind::Owned));
  }
}

void StaticSums::add_shares(std::span<const device::SlotId> partials) {
  for (const StaticRun& run : runs_)
    if (run.pieces.size() == 1)
      shares_.push_back({run.pieces[0].work, run.pieces[0].first, run.elements,
                         partials[std::size_t(run.pieces[0].work)], run.pieces[0].first});
  for (const Job& job : jobs_)
    for (const Part& part : job.parts) {
      const StaticPiece& own = part.run->pieces[part.own];
      shares_.push_back({own.work, own.first + part.elements.begin, part.elements.size(),
                         job.result, part.result});
    }
}

void StaticSums::prepare(BoundProgram& program, const device::Engine& engine) {
  if (!has_work()) return;
  const std::int64_t bytes = bytes_of(type_);
  std::vector<device::Move> moves;
  for (const Job& job : jobs_)
    for (const Part& part : job.parts) {
      std::int64_t to = part.others * bytes;
      const std::int64_t size = part.elements.size() * bytes;
      for (std::size_t i = 0; i < part.run->pieces.size(); ++i) {
        if (i == part.own) continue;
        const StaticPiece& piece = part.run->pieces[i];
        moves.push_back({partials_[std::size_t(piece.work)], job.others,
                         (piece.first + part.elements.begin) * bytes, to, size});
        to += size;
      }
    }
  exchange_ = engine.prepare_moves(std::move(moves));
  program.set_moves(exchange_node_, exchange_.moved);
  program.set_tiles(compute_node_, std::ssize(tiles_));
}

Cycles StaticSums::reduce(const device::Engine& engine, const device::Tile& tile, Job& job) const {
  const std::int64_t bytes = bytes_of(type_);
  const std::byte* own = tile.view(job.partials).data;
  const std::byte* others = tile.view(job.others).data;
  std::byte* result = tile.view(job.result).data;
  const AddUp add_up = add_up_for(type_, type_);
  for (const Part& part : job.parts) {
    const std::byte* next = others + part.others * bytes;
    const std::size_t depth = part.run->pieces.size();
    for (std::size_t i = 0; i < depth; ++i) {
      if (i == part.own) {
        job.views[i] = own + (part.run->pieces[i].first + part.elements.begin) * bytes;
        continue;
      }
      job.views[i] = next;
      next += part.elements.size() * bytes;
    }
    add_up(std::span(job.views).first(depth), part.elements.size(), result + part.result * bytes);
  }
  return codelets::reduce_cycles(job.elements, ceil_div(job.operands, job.elements), type_, type_,
                                 engine.machine().workers);
}

}  // namespace tessera::runtime::internal
