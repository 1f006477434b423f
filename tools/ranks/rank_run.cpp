#include "tessera/tools/ranks/rank_run.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/int_math.hpp"
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
using distributed::GroupPart;
using distributed::PassTimes;
using distributed::RankLayer;

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

// Returns the most memory that this process has had.
std::int64_t peak_of_process() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
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

// Adds the checks of all ranks up.
verify::Verdict of_all_ranks(Communicator& ranks, const verify::Verdict& own) {
  verify::Verdict all;
  for (const verify::Verdict& verdict : gather(ranks, "verdicts", own))
    if (verdict.compared > 0) add_verdict(verdict, all);
  return all;
}

// Adds the check of a part of the results, which begins there.
void add_part_at(std::int64_t row, std::int64_t col, verify::Verdict part, verify::Verdict& all) {
  part.worst_row += row;
  part.worst_col += col;
  if (part.compared > 0) add_verdict(part, all);
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
       gather(ranks, "self-checks", Sums{own.compared, own.recomputed, own.worst, own.exact}))
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
  RankPasses(RankLayer& layer, Ranks& own, Communicator& ranks, const RankWeights& weights,
             const Arguments& a, HostRun& run)
      : layer_(layer),
        ranks_(ranks),
        weights_(weights),
        run_(run),
        self_check_(a.self_check),
        is_first_(ranks.rank() == 0),
        is_checked_(a.stop == StopAfter::Checks),
        is_kept_(!a.output_dir.empty()),
        s_(make_s<T>(a, weights.layer)),
        q_grad_(make_q_grad<T>(a, weights.layer)) {
    own.require_same_operands(std::as_bytes(std::span(s_.elements())),
                              std::as_bytes(std::span(q_grad_.elements())));
    if (is_kept_ && is_first_)
      keep_operands(std::as_const(s_).view(), std::as_const(q_grad_).view(), run.report.problem,
                    run.files);
  }

  void go(report::HostPassReport& report) {
    switch (report.pass) {
      case Pass::Fwd:
        return product({s_, &GroupPart::inputs, &GroupPart::outputs}, report,
                       [this](auto in, auto out, const auto& options, PassTimes& times) {
                         return layer_.template forward<T>(in, out, {}, options, times);
                       });
      case Pass::GradA:
        return product({q_grad_, &GroupPart::outputs, &GroupPart::inputs}, report,
                       [this](auto in, auto out, const auto& options, PassTimes& times) {
                         return layer_.template grad_a<T>(in, out, {}, options, times);
                       });
      case Pass::GradW:
        return gradient(report);
    }
  }

 private:
  // An operand of all groups, and what a rank has of it and of the results.
  struct Product {
    const Matrix<T>& in;
    Range GroupPart::* from;
    Range GroupPart::* to;
  };

  std::int64_t groups() const { return layer_.problem().size.g; }

  // Returns rows of a group in an operand of all groups.
  MatrixView<const T> rows_in(const Matrix<T>& whole, std::int64_t group, Range rows) const {
    return rows_of_group(whole.view(), whole.rows() / groups(), std::size_t(group))
        .sub(rows, {0, whole.cols()});
  }

  // Returns this rank's rows of an operand of all groups.
  Matrix<T> own(const Matrix<T>& whole, Range GroupPart::* rows) const {
    std::int64_t count = 0;
    for (const GroupPart& part : layer_.parts()) count += (part.*rows).size();
    Matrix<T> all(count, whole.cols());
    auto to = all.elements().begin();
    for (const GroupPart& part : layer_.parts()) {
      const MatrixView<const T> of_group = rows_in(whole, part.group, part.*rows);
      to = std::copy_n(of_group.data, of_group.rows * of_group.cols, to);
    }
    return all;
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
      return gather(ranks_, "times of a pass", flat(times));
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

  template <class Run>
  void product(const Product& of, report::HostPassReport& report, const Run& run) {
    const Matrix<T> in = own(of.in, of.from);
    Matrix<T> out = own(of.to == &GroupPart::outputs ? q_grad_ : s_, of.to);
    measure(report, [&](const verify::RunOptions& options, PassTimes& times) {
      return run(in.view(), out.view(), options, times);
    });
    if (is_checked_) report.verdict = of_all_ranks(ranks_, verdict(of, report.pass, out));
    if (!is_kept_) return;
    const Matrix<T> all = results(of, out);
    if (is_first_)
      run_.files.emplace_back(report.pass == Pass::Fwd ? "q.npy" : "s_gradient.npy",
                              result_file(report.pass, all.view(), weights_.layer.scale_exponent));
  }

  // Compares this rank's results.
  verify::Verdict verdict(const Product& of, Pass pass, const Matrix<T>& out) const {
    verify::Verdict all;
    std::int64_t first = 0;
    for (const GroupPart& part : layer_.parts()) {
      const Range rows = part.*of.to, own_rows{first, first + rows.size()};
      first = own_rows.end;
      if (rows.size() == 0) continue;
      const MatrixView<const T> in = rows_in(of.in, part.group, {0, of.in.rows() / groups()});
      add_part_at(rows.begin, 0,
                  verify::verify_product<T>(
                      cropped(rows_of_matrix(pass, part.group, rows), rows.size(), in.rows), in,
                      out.view().sub(own_rows, {0, out.cols()}), layer_.rounding(pass)),
                  all);
    }
    return all;
  }

  // Returns the rows of R, or of its transpose for GradA, that these results need.
  sparse::Csr<float> rows_of_matrix(Pass pass, std::int64_t group, Range rows) const {
    if (!weights_.is_whole) return pass == Pass::Fwd ? layer_.weights() : layer_.columns();
    const auto matrix = weights_.layer.matrices()[std::size_t(group)];
    return distributed::rows_of(pass == Pass::Fwd ? *matrix : *sparse::transpose(matrix), rows);
  }

  // Returns the results of all ranks at their places, on the first rank.
  Matrix<T> results(const Product& of, const Matrix<T>& own) {
    const auto parts = to_first("parts of the ranks", layer_.parts());
    const auto rows = to_first("results", own.elements());
    if (!is_first_) return {};
    const Matrix<T>& like = of.to == &GroupPart::outputs ? q_grad_ : s_;
    Matrix<T> all(like.rows(), like.cols());
    auto from = rows.begin();
    for (const GroupPart& part : parts) {
      const std::int64_t first = part.group * like.rows() / groups() + (part.*of.to).begin;
      const std::int64_t count = (part.*of.to).size() * like.cols();
      std::copy_n(from, count, all.elements().begin() + first * like.cols());
      from += count;
    }
    return all;
  }

  void gradient(report::HostPassReport& report) {
    const Matrix<T> s = own(s_, &GroupPart::inputs), q_grad = own(q_grad_, &GroupPart::outputs);
    std::vector<float> values(std::size_t(layer_.values()));
    measure(report, [&](const verify::RunOptions& options, PassTimes& times) {
      return layer_.template grad_w<T>(q_grad.view(), s.view(), values, host::Accumulate::No,
                                       options, times);
    });
    verify::Verdict verdict;
    std::vector<Placed> places;
    auto next = values.begin();
    for (const GroupPart& part : layer_.parts()) {
      const sparse::Csr<float>& matrix = layer_.weights(part.group);
      sparse::Csr<float> own = matrix;
      std::copy_n(next, own.values.size(), own.values.begin());
      next += std::ssize(own.values);
      if (is_kept_) add_places(part, own, places);
      const std::int64_t rows = part.rows.size(), cols = part.columns.size();
      if (!is_checked_ || rows == 0) continue;
      add_part_at(part.rows.begin, part.columns.begin,
                  verify::verify_gradient<T>(cropped(matrix, rows, cols), cropped(own, rows, cols),
                                             rows_in(q_grad_, part.group, part.rows),
                                             rows_in(s_, part.group, part.columns),
                                             layer_.rounding(Pass::GradW)),
                  verdict);
    }
    if (is_checked_) report.verdict = of_all_ranks(ranks_, verdict);
    if (is_kept_ && io::can_read_npz()) keep(places, values);
  }

  // A block of all groups.
  struct Placed {
    std::int64_t group = 0;
    sparse::BlockAt at;
  };

  static void add_places(const GroupPart& part, const sparse::Csr<float>& own,
                         std::vector<Placed>& places) {
    const auto first_row = static_cast<std::int32_t>(ceil_div(part.rows.begin, own.block.rows));
    const auto first_col = static_cast<std::int32_t>(ceil_div(part.columns.begin, own.block.cols));
    for (std::int32_t row = 0; row < own.block_rows(); ++row)
      for (std::int64_t i = own.row_begin[std::size_t(row)];
           i < own.row_begin[std::size_t(row) + 1]; ++i)
        places.push_back({part.group, {first_row + row, first_col + own.col[std::size_t(i)]}});
  }

  // Stores the gradients of all ranks, on the first one.
  void keep(const std::vector<Placed>& own_places, const std::vector<float>& own_values) {
    const auto places = to_first("places of the gradients", own_places);
    const auto values = to_first("gradients", own_values);
    if (!is_first_) return;
    const Dims size = layer_.problem().size_in_blocks();
    const BlockShape block = layer_.problem().block;
    std::vector<sparse::Csr<float>> all(std::size_t(groups()),
                                        {.rows = size.x, .cols = size.y, .block = block});
    std::vector<std::size_t> order(places.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {},
                      [&](std::size_t i) { return std::pair(places[i].group, places[i].at); });
    for (sparse::Csr<float>& matrix : all)
      matrix.row_begin.assign(std::size_t(size.x / block.rows) + 1, 0);
    for (const std::size_t i : order) {
      sparse::Csr<float>& matrix = all[std::size_t(places[i].group)];
      ++matrix.row_begin[std::size_t(places[i].at.row) + 1];
      matrix.col.push_back(places[i].at.col);
      const auto from = values.begin() + std::int64_t(i) * block.area();
      matrix.values.insert(matrix.values.end(), from, from + block.area());
    }
    for (sparse::Csr<float>& matrix : all) {
      std::partial_sum(matrix.row_begin.begin(), matrix.row_begin.end(), matrix.row_begin.begin());
      matrix = cropped(matrix, weights_.layer.rows, weights_.layer.cols);
    }
    keep_gradients(all, run_.files);
  }

  // Returns a matrix without the padding of its last blocks.
  static sparse::Csr<float> cropped(const sparse::Csr<float>& matrix, std::int64_t rows,
                                    std::int64_t cols) {
    if (matrix.rows == rows && matrix.cols == cols) return matrix;
    return sparse::cropped(sparse::with_block(matrix, BlockShape{1, 1}), rows, cols);
  }

  // Returns the parts of all ranks, one after the other, on the first rank.
  template <class List>
  auto to_first(std::string_view what, const List& part) {
    using Element = std::remove_const_t<typename List::value_type>;
    std::vector<std::vector<Element>> lists(std::size_t(ranks_.size()));
    lists[0].assign(part.begin(), part.end());
    std::vector<Element> all;
    for (const auto& list : distributed::exchange_lists(ranks_, what, std::move(lists)))
      all.insert(all.end(), list.begin(), list.end());
    return all;
  }

  RankLayer& layer_;
  Communicator& ranks_;
  const RankWeights& weights_;
  HostRun& run_;
  SelfCheck self_check_;
  bool is_first_, is_checked_, is_kept_;
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
  const report::HostRank own{first.group * layer.problem().size.x + first.outputs.begin,
                             layer.output_rows(),
                             layer.values(),
                             threads,
                             cores_of_process(),
                             peak_of_process()};
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
         .cells = host::cells_of(pass, whole, report.cpu),
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
  const Problem problem = make_problem(a, weights);
  own.require_same_problem(problem);
  HostRun run = run_of(a, program, problem, weights.layer,
                       double(weights.empty_rows) /
                           double(problem.size.g * problem.size_in_blocks().x / problem.block.rows),
                       block_choice);
  if (!weights.note.empty()) run.context.notes.push_back(weights.note);
  progress.set("encoding");
  const auto executor = make_executor(threads_of_rank(a));
  // All ranks cut their panels for the same caches, or bits would differ.
  run.report.cpu = gather(ranks, "caches of the computers", run.report.cpu)[0];
  RankLayer layer(problem, run.report.cpu, *executor, ranks, {.replicas = a.replicas});
  if (layer.cut().replicas > 1)
    run.context.notes.push_back("cut over ranks: " + to_string(layer.cut()));
  encode(weights, ranks, layer, run);
  add_ranks(ranks, layer, std::max(a.threads, executor->threads()), run);
  add_forecasts(run.report);
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
