#include "tessera/tools/ranks/rank_run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/load_meter.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/distributed/layer.hpp"
#include "tessera/distributed/lists.hpp"
#include "tessera/distributed/mpi_ranks.hpp"
#include "tessera/host/cells.hpp"
#include "tessera/host/cost.hpp"
#include "tessera/tools/options/models.hpp"
#include "tessera/tools/options/progress.hpp"
#include "tessera/tools/ranks/internal/rank_target.hpp"
#include "tessera/tools/ranks/rank_weights.hpp"
#include "tessera/tools/run/operands.hpp"
#include "tessera/tools/run/run_passes.hpp"
#include "tessera/tools/run/weights.hpp"

namespace tessera::tools {
namespace {

using distributed::Communicator;
using distributed::GroupPart;
using distributed::RankLayer;

void refuse_what_one_process_does(const Arguments& a) {
  const auto refuse = [](const char* what) {
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} in one process; start the program without mpirun", what));
  };
  if (!is_host(a)) refuse("--machine: modelled machines run");
  if (a.product) refuse("products run");
  if (a.dense != host::DenseChoice::Never) refuse("--dense: dense passes run");
}

// The first rank chooses the block, for which it reads the whole pattern of a file; the others are
// told, also because their computers may have other rates. Returns the note of choose_block.
std::string choose_block_together(Arguments& a, Communicator& ranks) {
  if (!a.chooses_block) return {};
  std::string note;
  if (ranks.rank() == 0) note = choose_block(a, {});
  const std::vector<std::int64_t> sides = distributed::list_of_first(
      ranks, "the block size", std::vector<std::int64_t>{a.block.rows, a.block.cols});
  a.block = {sides[0], sides[1]};
  a.chooses_block = false;
  return note;
}

void add_ranks(Communicator& ranks, const RankLayer& layer, int threads, HostRun& run) {
  const GroupPart& first = layer.parts()[0];
  const report::HostRank own{first.group * run.report.problem.size.x + first.outputs.begin,
                             layer.facts().output_rows,
                             layer.values(),
                             threads,
                             LoadMeter::cores_of_process(),
                             LoadMeter::peak_bytes()};
  run.report.ranks = gather(ranks, "figures of the ranks", own);
  run.report.threads = 0;
  for (std::size_t i = 0; i < run.report.ranks.size(); ++i) {
    const report::HostRank& rank = run.report.ranks[i];
    run.report.threads += int(rank.threads);
    if (rank.cores < rank.threads)
      run.context.notes.push_back(
          fmt::format("rank {} has {} threads, but is bound to {} core{}; give mpirun --bind-to "
                      "none, or --map-by slot:PE={}",
                      i, rank.threads, rank.cores, rank.cores == 1 ? "" : "s", rank.threads));
  }
}

// The cells and the forecast are those of one process with the threads of all ranks.
void add_forecasts(report::HostReport& report) {
  const Problem& problem = report.problem;
  const std::int64_t groups = problem.size.g;
  Dims size = problem.size_in_blocks();
  size.g = 1;
  const host::HostProblem whole{size, problem.block, report.values / problem.block.area() / groups,
                                problem.data_type};
  const host::HostSetting setting{report.cpu, report.threads, host::default_host_rates()};
  for (const Pass pass : passes_of(problem))
    report.passes.push_back(
        {.pass = pass,
         .cells = host::cells_of(pass, whole, report.cpu, setting.threads),
         .forecast_seconds =
             double(groups) * host::forecast_sparse(pass, whole, setting).seconds()});
}

// Gives the layer its weights and measures how long the slowest rank takes.
void encode(const RankWeights& weights, Communicator& ranks, RankLayer& layer, HostRun& run) {
  const auto matrices = weights.layer.matrices();
  const auto begin = std::chrono::steady_clock::now();
  if (weights.is_whole)
    layer.set_weights(matrices);
  else
    layer.set_rows(weights.cut, weights.rows);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  run.report.encode_seconds = std::ranges::max(gather(ranks, "times to encode", seconds));
  run.report.values = weights.blocks * weights.block.area();
}

}  // namespace

HostRun run_on_ranks(const Arguments& given, const char* program, Ranks& own, Communicator& ranks) {
  Arguments a = given;
  refuse_what_one_process_does(a);
  own.require_same_options(a);
  a.seed = own.seed_of_all(a.seed);
  Progress progress(a.quiet || ranks.rank() != 0);
  progress.set("reading");
  const std::string block_choice = choose_block_together(a, ranks);
  const RankWeights weights = make_rank_weights(a, ranks);
  a.batch_size = batch_of(a, weights.layer);
  const Problem problem = make_problem(a, weights.layer, weights.block, weights.blocks);
  own.require_same_problem(problem);
  const std::int64_t block_rows = problem.size_in_blocks().x / problem.block.rows;
  HostRun run =
      run_of(a, program, problem, weights.layer,
             double(weights.empty_rows) / double(problem.size.g * block_rows), block_choice);
  if (!weights.note.empty()) run.context.notes.push_back(weights.note);
  progress.set("encoding");
  const auto executor = make_executor(threads_of_rank(a.threads));
  // All ranks cut their panels for the same caches, or bits would differ.
  run.report.cpu = gather(ranks, "caches of the computers", run.report.cpu)[0];
  RankLayer layer(problem, run.report.cpu, *executor, ranks, {.replicas = a.replicas});
  if (layer.cut().replicas > 1)
    run.context.notes.push_back("cut over ranks: " + to_string(layer.cut()));
  encode(weights, ranks, layer, run);
  add_ranks(ranks, layer, std::max(a.threads, executor->threads()), run);
  add_forecasts(run.report);
  if (a.stop < StopAfter::Passes) return run;
  internal::RankTarget target(layer, ranks, weights, run);
  const std::int64_t ran = run_passes(target, problem, weights.layer, a, run.files, progress);
  run.context.is_partial = ran < std::ssize(run.report.passes);
  return run;
}

int threads_of_rank(int asked) {
  if (asked > 0) return asked;
  const std::int64_t own = LoadMeter::cores_of_process();
  if (own < ::sysconf(_SC_NPROCESSORS_ONLN)) return int(own);
  return int(std::max<std::int64_t>(own / distributed::ranks_of_this_computer(), 1));
}

}  // namespace tessera::tools
