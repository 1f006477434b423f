#include "tessera/tools/sparse_fc_layer/rank_run.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/distributed/layer.hpp"
#include "tessera/distributed/lists.hpp"
#include "tessera/distributed/mpi_ranks.hpp"
#include "tessera/host/cells.hpp"
#include "tessera/host/cost.hpp"
#include "tessera/io/npz.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/tools/block_choice.hpp"
#include "tessera/tools/internal/host_timing.hpp"
#include "tessera/tools/internal/progress.hpp"
#include "tessera/tools/sparse_fc_layer/operands.hpp"
#include "tessera/tools/sparse_fc_layer/weights.hpp"

namespace tessera::tools {
namespace {

using distributed::Communicator;
using distributed::DistributedLayer;
using distributed::PassTimes;
using distributed::RowCut;

// Cores that the launcher allows this process.
std::int64_t cores_of_process() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

// Without --threads a rank that is bound takes its cores, and one that is not its share of all.
int threads_of_rank(const Arguments& a) {
  if (a.threads > 0) return a.threads;
  const std::int64_t own = cores_of_process();
  if (own < ::sysconf(_SC_NPROCESSORS_ONLN)) return int(own);
  return int(std::max<std::int64_t>(own / distributed::ranks_of_this_computer(), 1));
}

// The figures of one rank that travel to the first one.
struct RankFigures {
  std::int64_t first_row = 0, rows = 0, values = 0, cores = 1, threads = 1;
};
struct RankTimes {
  double seconds = 0, gather_seconds = 0, copy_seconds = 0, kernel_seconds = 0;
  std::int64_t received_bytes = 0;
};

RankTimes flat(const PassTimes& t) {
  return {t.host.seconds, t.gather_seconds, t.host.copy_seconds, t.host.kernel_seconds,
          t.received_bytes};
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
    times.seconds = std::max(times.seconds, t.seconds);
    times.copy_seconds = std::max(times.copy_seconds, t.copy_seconds);
    times.kernel_seconds += t.kernel_seconds;
  }
  return times;
}

// The layer with operands for the whole batch; each rank uses its rows of them.
template <class T>
class RankPasses {
 public:
  RankPasses(DistributedLayer& layer, Communicator& ranks, const Weights& weights,
             const Arguments& a, HostRun& run)
      : layer_(layer),
        ranks_(ranks),
        weights_(weights),
        run_(run),
        speaks_(ranks.rank() == 0),
        is_checked_(speaks_ && a.stop == StopAfter::Checks),
        is_kept_(speaks_ && !a.output_dir.empty()),
        is_needed_(a.stop == StopAfter::Checks || !a.output_dir.empty()),
        s_(make_s<T>(a, weights)),
        q_grad_(make_q_grad<T>(a, weights)) {
    if (is_kept_)
      keep_operands(std::as_const(s_).view(), std::as_const(q_grad_).view(), run.report.problem,
                    run.files);
  }

  void go(report::HostPassReport& report) {
    switch (report.pass) {
      case Pass::Fwd:
        return product(inside(weights_), s_, layer_.inputs(), layer_.outputs(), report,
                       [this](auto in, auto out) { return layer_.template forward<T>(in, out); });
      case Pass::GradA: {
        std::vector<sparse::CheckedCsr<float>> transposes;
        if (is_checked_)
          for (const auto& matrix : inside(weights_))
            transposes.push_back(sparse::transpose(matrix));
        return product(transposes, q_grad_, layer_.outputs(), layer_.inputs(), report,
                       [this](auto in, auto out) { return layer_.template grad_a<T>(in, out); });
      }
      case Pass::GradW:
        return gradient(report);
    }
  }

 private:
  MatrixView<const T> own(const Matrix<T>& whole, const RowCut& cut) const {
    return whole.view().sub(cut.of(ranks_.rank()), {0, whole.cols()});
  }

  // Runs a pass as often as the slowest rank's first run allows in a tenth of a second.
  template <class Run>
  void measure(report::HostPassReport& report, const Run& run) {
    constexpr double kSeconds = 0.1;
    const auto once = [&] {
      ranks_.barrier("start of a pass");
      return of_ranks(ranks_, "times of a pass", flat(run()));
    };
    once();  // allocates memory and warms the caches
    std::vector<std::vector<RankTimes>> runs{once()};
    const double first = std::max(slowest(runs[0]).seconds, 1e-9);
    const auto wanted = static_cast<std::size_t>(std::clamp(kSeconds / first, 3.0, 25.0));
    while (runs.size() < wanted) runs.push_back(once());
    std::vector<host::HostTimes> times;
    for (const auto& of_run : runs) times.push_back(slowest(of_run));
    const internal::MedianTimes median = internal::median_of(times);
    report.times = median.times;
    report.runs = median.runs;
    report.spread = median.spread;
    std::sort(runs.begin(), runs.end(),
              [](const auto& a, const auto& b) { return slowest(a).seconds < slowest(b).seconds; });
    add_notes(report.pass, runs[runs.size() / 2]);
  }

  void add_notes(Pass pass, const std::vector<RankTimes>& times) {
    for (std::size_t rank = 0; rank < times.size(); ++rank) {
      const RankTimes& t = times[rank];
      run_.context.notes.push_back(
          fmt::format("rank {}: {} in {:.4f} ms, {:.1f} % of it waiting; received {} bytes", rank,
                      to_string(pass), 1e3 * t.seconds,
                      t.seconds > 0 ? 100 * t.gather_seconds / t.seconds : 0, t.received_bytes));
    }
  }

  template <class Run>
  void product(const std::vector<sparse::CheckedCsr<float>>& matrices, const Matrix<T>& in,
               const RowCut& from, const RowCut& to, report::HostPassReport& report,
               const Run& run) {
    Matrix<T> part(to.of(ranks_.rank()).size(), in.cols());
    measure(report, [&] { return run(own(in, from), part.view()); });
    if (!is_needed_) return;
    std::vector<T> all = to_first("results", part.elements());
    if (!speaks_) return;
    const MatrixView<const T> out{all.data(), to.rows(), in.cols(), in.cols(), 1};
    if (is_kept_)
      run_.files.emplace_back(report.pass == Pass::Fwd ? "q.npy" : "s_gradient.npy",
                              result_file(report.pass, out, weights_.scale_exponent));
    if (is_checked_)
      report.verdict = verify_groups<T>(matrices, in.view(), out, layer_.rounding(report.pass));
  }

  void gradient(report::HostPassReport& report) {
    std::vector<float> part(std::size_t(layer_.values()));
    measure(report, [&] {
      return layer_.template grad_w<T>(own(q_grad_, layer_.outputs()), own(s_, layer_.inputs()),
                                       part);
    });
    if (!is_needed_) return;
    std::vector<float> all = to_first("gradients", part);
    if (!speaks_) return;
    sparse::Csr<float> whole = *weights_.matrix;
    whole.values = std::move(all);
    const sparse::Csr<float> result = inside(std::move(whole), weights_);
    if (is_kept_ && io::can_read_npz())
      run_.files.emplace_back("weight_gradient.npz", io::write_npz(result));
    if (is_checked_)
      report.verdict =
          verify::verify_gradient<T>(*inside(weights_)[0], result, std::as_const(q_grad_).view(),
                                     std::as_const(s_).view(), layer_.rounding(Pass::GradW));
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
  const Weights& weights_;
  HostRun& run_;
  bool speaks_, is_checked_, is_kept_;
  bool is_needed_;  // the first rank checks or keeps results
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
  if (a.self_check != SelfCheck::None) refuse("--self-check runs");
  if (a.groups > 1) refuse("--groups: layers of several groups run");
}

void add_rank_notes(Communicator& ranks, const DistributedLayer& layer, int threads, HostRun& run) {
  const Range rows = layer.outputs().of(ranks.rank());
  const RankFigures own{rows.begin, rows.size(), layer.values(), cores_of_process(), threads};
  const auto all = of_ranks(ranks, "figures of the ranks", own);
  run.report.threads = 0;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const RankFigures& f = all[rank];
    run.report.threads += int(f.threads);
    run.context.notes.push_back(fmt::format(
        "rank {}: {} rows from {}, {:.1f} % of the values, {} thread{}", rank, f.rows, f.first_row,
        layer.all_values() > 0 ? 100.0 * double(f.values) / double(layer.all_values()) : 0,
        f.threads, f.threads == 1 ? "" : "s"));
    if (f.cores < f.threads)
      run.context.notes.push_back(
          fmt::format("rank {} has {} threads, but is bound to {} core{}; give mpirun --bind-to "
                      "none, or --map-by slot:PE={}",
                      rank, f.threads, f.cores, f.cores == 1 ? "" : "s", f.threads));
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

HostRun run_on_ranks(const Arguments& given, const char* program, Communicator& ranks) {
  Arguments a = given;
  refuse_what_one_process_does(a);
  internal::Progress progress(a.quiet || ranks.rank() != 0);
  progress.set("reading");
  const std::string block_choice = choose_block(a, {});
  const Weights weights = make_weights(a);
  a.batch_size = batch_of(a, weights);
  HostRun run = run_of(a, program, weights, block_choice);
  progress.set("encoding");
  const auto executor = make_executor(threads_of_rank(a));
  // All ranks cut their panels for the same caches, or bits would differ.
  run.report.cpu = of_ranks(ranks, "caches of the computers", run.report.cpu)[0];
  DistributedLayer layer(run.report.problem, run.report.cpu, *executor, ranks);
  const auto begin = std::chrono::steady_clock::now();
  layer.set_weights(*weights.matrix);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  for (const double of_rank : of_ranks(ranks, "times to encode", seconds))
    run.report.encode_seconds = std::max(run.report.encode_seconds, of_rank);
  run.report.values = layer.all_values();
  add_rank_notes(ranks, layer, std::max(a.threads, executor->threads()), run);
  add_forecasts(layer.all_values(), run.report);
  if (a.stop < StopAfter::Passes) return run;
  with_type(run.report.problem.data_type, [&]<class T>(T) {
    RankPasses<T> passes(layer, ranks, weights, a, run);
    for (report::HostPassReport& pass : run.report.passes) {
      progress.set(to_string(pass.pass));
      passes.go(pass);
    }
  });
  return run;
}

}  // namespace tessera::tools
