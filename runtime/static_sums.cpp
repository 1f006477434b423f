#include "tessera/runtime/internal/static_sums.hpp"

#include <algorithm>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/runtime/internal/add_up.hpp"

namespace tessera::runtime::internal {

StaticSums::StaticSums(std::span<const StaticRun> runs, DataType type)
    : runs_(runs), type_(type), has_work_(std::ranges::any_of(runs, [](const StaticRun& run) {
        return run.pieces.size() > 1;
      })) {}

void StaticSums::declare(TileProgram& program, BufferId partials, std::span<const StaticWork> works,
                         std::span<const device::SlotId> slots) {
  partial_buffer_ = partials;
  partials_.assign(slots.begin(), slots.end());
  find_jobs(works, program.engine().machine().tiles);
  if (has_work()) {
    others_buffer_ = program.add_buffer("partials of others");
    result_buffer_ = program.add_buffer("result");
    const std::int64_t bytes = bytes_of(type_);
    for (Job& job : jobs_) {
      job.others =
          program.add_slot(others_buffer_, job.tile, 1, (job.operands - job.elements) * bytes);
      job.result = program.add_slot(result_buffer_, job.tile, 1, job.elements * bytes,
                                    device::SlotKind::Owned);
    }
    program.exchange_in_place(Phase::Reduce, {{partials}, {others_buffer_}},
                              [this](const auto& visit) { for_each_move(visit); });
    program.compute(Phase::Reduce, {{partials, others_buffer_}, {result_buffer_}}, tiles_,
                    [this, &program](const device::Tile& tile) {
                      return reduce(program.engine(), tile,
                                    jobs_[std::size_t(job_of_tile_[std::size_t(tile.id().value)])]);
                    });
  }
  add_shares();
}

std::vector<BufferId> StaticSums::results() const {
  if (!has_work()) return {partial_buffer_};
  return {partial_buffer_, result_buffer_};
}

void StaticSums::find_jobs(std::span<const StaticWork> works, std::int64_t tiles) {
  std::vector<std::int32_t> job_of_work(works.size(), -1);
  for (std::size_t r = 0; r < runs_.size(); ++r) {
    const StaticRun& run = runs_[r];
    for (std::size_t i = 0; run.pieces.size() > 1 && i < run.pieces.size(); ++i) {
      const std::int64_t elements = run.share(i).size();
      if (elements == 0) continue;
      const auto work = std::size_t(run.pieces[i].work);
      if (job_of_work[work] < 0) {
        job_of_work[work] = std::int32_t(jobs_.size());
        jobs_.push_back({.tile = works[work].tile, .partials = partials_[work]});
      }
      Job& job = jobs_[std::size_t(job_of_work[work])];
      job.parts.push_back({std::int32_t(r), std::int32_t(i),
                           std::int32_t(job.operands - job.elements), std::int32_t(job.elements)});
      job.elements += elements;
      job.operands += elements * std::ssize(run.pieces);
      job.views.resize(std::max(job.views.size(), run.pieces.size()));
    }
  }
  for (Job& job : jobs_) job.parts.shrink_to_fit();
  std::ranges::sort(jobs_, {}, &Job::tile);
  job_of_tile_.assign(std::size_t(tiles), -1);
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    job_of_tile_[std::size_t(jobs_[i].tile.value)] = std::int32_t(i);
    tiles_.push_back(jobs_[i].tile);
  }
}

void StaticSums::add_shares() {
  std::size_t count = 0;
  for (const StaticRun& run : runs_) count += run.pieces.size() == 1;
  for (const Job& job : jobs_) count += job.parts.size();
  shares_.reserve(count);
  for (const StaticRun& run : runs_)
    if (run.pieces.size() == 1) {
      const auto first = std::int32_t(run.pieces[0].first);
      shares_.push_back({run.pieces[0].work, first, std::int32_t(run.elements), first,
                         partials_[std::size_t(run.pieces[0].work)]});
    }
  for (const Job& job : jobs_)
    for (const Part& part : job.parts) {
      const StaticPiece& own = run_of(part).pieces[std::size_t(part.own)];
      const Range elements = elements_of(run_of(part), part);
      shares_.push_back({own.work, std::int32_t(own.first + elements.begin),
                         std::int32_t(elements.size()), part.result, job.result});
    }
}

template <class Visit>
void StaticSums::for_each_piece(const Job& job, const Part& part, const Visit& visit) const {
  const std::int64_t bytes = bytes_of(type_);
  const StaticRun& run = run_of(part);
  const Range elements = elements_of(run, part);
  std::int64_t to = part.others * bytes;
  for (std::size_t i = 0; i < run.pieces.size(); ++i) {
    const StaticPiece& piece = run.pieces[i];
    const device::Move move{partials_[std::size_t(piece.work)], job.others,
                            (piece.first + elements.begin) * bytes, to, elements.size() * bytes};
    visit(i, move);
    if (i != std::size_t(part.own)) to += move.bytes;
  }
}

void StaticSums::for_each_move(const std::function<void(const device::Move&)>& visit) const {
  for (const Job& job : jobs_)
    for (const Part& part : job.parts)
      for_each_piece(job, part, [&](std::size_t i, const device::Move& move) {
        if (i != std::size_t(part.own)) visit(move);
      });
}

Cycles StaticSums::reduce(const device::Engine& engine, const device::Tile& tile, Job& job) const {
  const std::int64_t bytes = bytes_of(type_);
  std::byte* result = tile.view(job.result).data;
  const AddUp add_up = add_up_for(type_, type_);
  for (const Part& part : job.parts) {
    const StaticRun& run = run_of(part);
    for_each_piece(job, part, [&](std::size_t i, const device::Move& move) {
      job.views[i] = i == std::size_t(part.own) ? engine.view(move.from).data + move.from_byte
                                                : engine.moved_bytes(move);
    });
    add_up(std::span(job.views).first(run.pieces.size()), elements_of(run, part).size(),
           result + part.result * bytes);
  }
  return codelets::reduce_cycles(job.elements, ceil_div(job.operands, job.elements), type_, type_,
                                 engine.machine().workers);
}

}  // namespace tessera::runtime::internal
