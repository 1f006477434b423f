#include "tessera/tools/ranks/rank_run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <numeric>
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
#include "tessera/io/npz.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/restrict.hpp"
#include "tessera/study/timing.hpp"
#include "tessera/tools/options/models.hpp"
#include "tessera/tools/options/progress.hpp"
#include "tessera/tools/ranks/rank_weights.hpp"
#include "tessera/tools/run/operands.hpp"
#include "tessera/tools/run/trust.hpp"
#include "tessera/tools/run/weights.hpp"

namespace tessera::tools {
namespace {

using distributed::Communicator;
using distributed::DistributedLayer;
using distributed::PassTimes;
using distributed::RowCut;

// Without --threads a rank that is bound takes its cores, and one that is not its share of all.
int threads_of_rank(const Arguments& a) {
  if (a.threads > 0) return a.threads;
  const std::int64_t own = LoadMeter::cores_of_process();
  if (own < ::sysconf(_SC_NPROCESSORS_ONLN)) return int(own);
  return int(std::max<std::int64_t>(own / distributed::ranks_of_this_computer(), 1));
}

// The times of one rank that travel to the first one.
struct RankTimes {
  report::HostRankPass pass;
  double copy_seconds = 0, kernel_seconds = 0;
};

RankTimes flat(const PassTimes& t) {
  return {{t.host.seconds, t.gather_seconds, t.received_bytes},
          t.host.copy_seconds,
          t.host.kernel_seconds};
}

template <class T>
std::vector<T> of_ranks(Communicator& ranks, std::string_view what, const T& own) {
  std::vector<T> all;
  for (const auto& list : distributed::gather_lists(ranks, what, std::vector<T>{own}))
    all.push_back(list[0]);
  return all;
}

// One run of a pass on all ranks: they end with the slowest one.
host::HostTimes slowest(const std::vector<RankTimes>& of_run) {
  host::HostTimes times;
  for (const RankTimes& t : of_run) {
    times.seconds = std::max(times.seconds, t.pass.seconds);
    times.copy_seconds = std::max(times.copy_seconds, t.copy_seconds);
    times.kernel_seconds += t.kernel_seconds;
  }
  return times;
}

// Adds the checks of all ranks up. A row of the worst result is one of this rank's from
// `first_row`.
verify::Verdict of_all_ranks(Communicator& ranks, verify::Verdict own, std::int64_t first_row) {
  own.worst_row += first_row;
  verify::Verdict all;
  for (const verify::Verdict& verdict : of_ranks(ranks, "verdicts", own))
    if (verdict.compared > 0) verify::add_part(verdict, all);
  return all;
}

// Adds the self-checks of all ranks up. They have found nothing wrong, or the pass had ended.
verify::Checksums of_all_ranks(Communicator& ranks, const verify::Checksums& own) {
  struct Sums {
    std::int64_t compared, recomputed;
    double worst;
    bool exact;
  };
  verify::Checksums all;
  for (const Sums& one :
       of_ranks(ranks, "self-checks", Sums{own.compared, own.recomputed, own.worst, own.exact}))
    if (one.compared > 0)
      verify::add_part({.exact = one.exact,
                        .compared = one.compared,
                        .recomputed = one.recomputed,
                        .worst = one.worst},
                       all);
  return all;
}

// The layer with operands for the whole batch; each rank uses its rows of them. A rank checks its
// own results, so no rank needs the weights of others.
template <class T>
class RankPasses {
 public:
  RankPasses(DistributedLayer& layer, Ranks& own, Communicator& ranks, const RankWeights& weights,
             const Arguments& a, HostRun& run)
      : layer_(layer),
        ranks_(ranks),
        weights_(weights),
        run_(run),
        self_check_(a.self_check),
        speaks_(ranks.rank() == 0),
        is_checked_(a.stop == StopAfter::Checks),
        is_kept_(!a.output_dir.empty()),
        s_(make_s<T>(a, weights.layer)),
        q_grad_(make_q_grad<T>(a, weights.layer)) {
    own.require_same_operands(std::as_bytes(std::span(s_.elements())),
                              std::as_bytes(std::span(q_grad_.elements())));
    if (is_kept_ && speaks_)
      keep_operands(std::as_const(s_).view(), std::as_const(q_grad_).view(), run.report.problem,
                    run.files);
  }

  void go(report::HostPassReport& report) {
    const RowCut &outputs = layer_.outputs(), &inputs = layer_.inputs();
    switch (report.pass) {
      case Pass::Fwd:
        return product(layer_.weights(), s_, inputs, outputs, report,
                       [this](auto in, auto out, const auto& options, PassTimes& times) {
                         return layer_.template forward<T>(in, out, {}, options, times);
                       });
      case Pass::GradA:
        return product(layer_.columns(), q_grad_, outputs, inputs, report,
                       [this](auto in, auto out, const auto& options, PassTimes& times) {
                         return layer_.template grad_a<T>(in, out, {}, options, times);
                       });
      case Pass::GradW:
        return gradient(report);
    }
  }

 private:
  MatrixView<const T> own(const Matrix<T>& whole, const RowCut& cut) const {
    return whole.view().sub(cut.of(ranks_.rank()), {0, whole.cols()});
  }

  // Runs a pass as often as the slowest rank's first run allows in a tenth of a second, and once
  // more to check it.
  template <class Run>
  void measure(report::HostPassReport& report, const Run& run) {
    constexpr double kSeconds = 0.1;
    const auto once = [&](const verify::RunOptions& options) {
      PassTimes times;
      ranks_.barrier("start of a pass");
      [[maybe_unused]] const bool finished = run(options, times);
      return of_ranks(ranks_, "times of a pass", flat(times));
    };
    once({});  // allocates memory and warms the caches
    std::vector<std::vector<RankTimes>> runs{once({})};
    const double first = std::max(slowest(runs[0]).seconds, 1e-9);
    const auto wanted = static_cast<std::size_t>(std::clamp(kSeconds / first, 3.0, 25.0));
    while (runs.size() < wanted) runs.push_back(once({}));
    std::vector<host::HostTimes> times;
    for (const auto& of_run : runs) times.push_back(slowest(of_run));
    const study::MedianTimes median = study::median_of(times);
    report.times = median.times;
    report.runs = median.runs;
    report.spread = median.spread;
    std::sort(runs.begin(), runs.end(),
              [](const auto& a, const auto& b) { return slowest(a).seconds < slowest(b).seconds; });
    for (const RankTimes& rank : runs[runs.size() / 2]) report.ranks.push_back(rank.pass);
    if (self_check_ == SelfCheck::None) return;
    verify::Checksums checksums;
    once({.self_check = &checksums, .repair = self_check_ == SelfCheck::Repair});
    report.self_check = of_all_ranks(ranks_, checksums);
    run_.context.notes.push_back(self_check_note(report.pass, *report.self_check));
  }

  // `matrix` has the rows of R, or of its transpose, that the results of this rank need.
  template <class Run>
  void product(const sparse::Csr<float>& matrix, const Matrix<T>& in, const RowCut& from,
               const RowCut& to, report::HostPassReport& report, const Run& run) {
    const Range own_rows = to.of(ranks_.rank());
    Matrix<T> part(own_rows.size(), in.cols());
    measure(report, [&](const verify::RunOptions& options, PassTimes& times) {
      return run(own(in, from), part.view(), options, times);
    });
    if (is_checked_) {
      verify::Verdict verdict;
      if (own_rows.size() > 0)
        verdict =
            verify::verify_product<T>(sparse::inside(matrix, own_rows.size(), in.rows()), in.view(),
                                      std::as_const(part).view(), layer_.rounding(report.pass));
      report.verdict = of_all_ranks(ranks_, verdict, own_rows.begin);
    }
    if (!is_kept_) return;
    std::vector<T> all = to_first("results", part.elements());
    if (!speaks_) return;
    const MatrixView<const T> out{all.data(), to.rows(), in.cols(), in.cols(), 1};
    run_.files.emplace_back(report.pass == Pass::Fwd ? "q.npy" : "s_gradient.npy",
                            result_file(report.pass, out, weights_.layer.scale_exponent));
  }

  void gradient(report::HostPassReport& report) {
    const RowCut& outputs = layer_.outputs();
    sparse::Csr<float> part = layer_.weights();
    measure(report, [&](const verify::RunOptions& options, PassTimes& times) {
      return layer_.template grad_w<T>(own(q_grad_, outputs), own(s_, layer_.inputs()), part.values,
                                       host::Accumulate::No, options, times);
    });
    const Range rows = outputs.of(ranks_.rank());
    part = sparse::inside(std::move(part), rows.size(), s_.rows());
    if (is_checked_) {
      verify::Verdict verdict;
      if (rows.size() > 0)
        verdict = verify::verify_gradient<T>(
            sparse::inside(layer_.weights(), rows.size(), s_.rows()), part, own(q_grad_, outputs),
            std::as_const(s_).view(), layer_.rounding(Pass::GradW));
      report.verdict = of_all_ranks(ranks_, verdict, rows.begin);
    }
    if (!is_kept_ || !io::can_read_npz()) return;
    sparse::Csr<float> all{.rows = outputs.rows(), .cols = s_.rows(), .block = part.block};
    const std::vector<std::int64_t> ends(part.row_begin.begin() + 1, part.row_begin.end());
    const std::vector<std::int64_t> first = to_first("entries of the rows", lengths(ends));
    all.col = to_first("columns of the gradients", part.col);
    all.values = to_first("gradients", part.values);
    if (!speaks_) return;
    for (const std::int64_t length : first) all.row_begin.push_back(all.row_begin.back() + length);
    all.rows = (std::ssize(all.row_begin) - 1) * all.block.rows;
    run_.files.emplace_back("weight_gradient.npz", io::write_npz(all));
  }

  static std::vector<std::int64_t> lengths(std::vector<std::int64_t> ends) {
    std::adjacent_difference(ends.begin(), ends.end(), ends.begin());
    return ends;
  }

  // Returns the parts of all ranks, one after the other, on the first rank.
  template <class List>
  auto to_first(std::string_view what, const List& part) {
    using Element = typename List::value_type;
    std::vector<std::vector<Element>> lists(std::size_t(ranks_.size()));
    lists[0].assign(part.begin(), part.end());
    std::vector<Element> all;
    for (const auto& list : distributed::exchange_lists(ranks_, what, std::move(lists)))
      all.insert(all.end(), list.begin(), list.end());
    return all;
  }

  DistributedLayer& layer_;
  Communicator& ranks_;
  const RankWeights& weights_;
  HostRun& run_;
  SelfCheck self_check_;
  bool speaks_, is_checked_, is_kept_;
  Matrix<T> s_, q_grad_;
};

void refuse_what_one_process_does(const Arguments& a) {
  const auto refuse = [](const char* what) {
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} in one process; start the program without mpirun", what));
  };
  if (!is_host(a)) refuse("--machine: modelled machines run");
  if (a.product) refuse("products run");
  if (a.dense != host::DenseChoice::Never) refuse("--dense: dense passes run");
  if (a.groups > 1) refuse("--groups: layers of several groups run");
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

void add_ranks(Communicator& ranks, const DistributedLayer& layer, int threads, HostRun& run) {
  const Range rows = layer.outputs().of(ranks.rank());
  const report::HostRank own{rows.begin,
                             rows.size(),
                             layer.values(),
                             threads,
                             LoadMeter::cores_of_process(),
                             LoadMeter::peak_bytes()};
  run.report.ranks = of_ranks(ranks, "figures of the ranks", own);
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
void add_forecasts(std::int64_t values, report::HostReport& report) {
  const Problem& problem = report.problem;
  const host::HostProblem whole{problem.size_in_blocks(), problem.block,
                                values / problem.block.area(), problem.data_type};
  const host::HostRates rates = host::default_host_rates();
  for (const Pass pass : passes_of(problem))
    report.passes.push_back(
        {.pass = pass,
         .cells = host::cells_of(pass, whole, report.cpu),
         .forecast_seconds =
             host::forecast_sparse(pass, whole, {report.cpu, report.threads, rates}).seconds()});
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
  RankWeights weights = make_rank_weights(a, ranks);
  a.batch_size = batch_of(a, weights.layer);
  const Problem problem = make_problem(a, weights);
  own.require_same_problem(problem);
  HostRun run =
      run_of(a, program, problem, weights.layer,
             double(weights.empty_rows) / double(problem.size_in_blocks().x / problem.block.rows),
             block_choice);
  if (!weights.note.empty()) run.context.notes.push_back(weights.note);
  progress.set("encoding");
  const auto executor = make_executor(threads_of_rank(a));
  // All ranks cut their panels for the same caches, or bits would differ.
  run.report.cpu = of_ranks(ranks, "caches of the computers", run.report.cpu)[0];
  DistributedLayer layer(problem, run.report.cpu, *executor, ranks);
  const auto begin = std::chrono::steady_clock::now();
  layer.set_rows(weights.cut, std::move(weights.rows));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  for (const double of_rank : of_ranks(ranks, "times to encode", seconds))
    run.report.encode_seconds = std::max(run.report.encode_seconds, of_rank);
  run.report.values = layer.all_values();
  add_ranks(ranks, layer, std::max(a.threads, executor->threads()), run);
  add_forecasts(layer.all_values(), run.report);
  if (a.stop < StopAfter::Passes) return run;
  with_type(run.report.problem.data_type, [&]<class T>(T) {
    RankPasses<T> passes(layer, own, ranks, weights, a, run);
    for (report::HostPassReport& pass : run.report.passes) {
      progress.set(to_string(pass.pass));
      passes.go(pass);
    }
  });
  return run;
}

}  // namespace tessera::tools
