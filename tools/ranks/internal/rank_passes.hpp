#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/base/int_math.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/distributed/layer.hpp"
#include "tessera/distributed/lists.hpp"
#include "tessera/io/npz.hpp"
#include "tessera/layer/pass_options.hpp"
#include "tessera/report/host_report.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/restrict.hpp"
#include "tessera/study/timing.hpp"
#include "tessera/tools/ranks/rank_weights.hpp"
#include "tessera/tools/run/arguments.hpp"
#include "tessera/tools/run/host_run.hpp"
#include "tessera/tools/run/operands.hpp"
#include "tessera/tools/run/ranks.hpp"
#include "tessera/tools/run/trust.hpp"

namespace tessera::tools::internal {

using distributed::Communicator;
using distributed::GroupPart;
using distributed::PassTimes;
using distributed::RankLayer;

// The times of one rank that travel to the first one.
struct RankTimes {
  report::HostRankPass pass;
  double copy_seconds = 0, kernel_seconds = 0;
};

inline RankTimes flat(const PassTimes& t) {
  return {{t.host.seconds, t.gather_seconds, t.received_bytes},
          t.host.copy_seconds,
          t.host.kernel_seconds};
}

// One run of a pass on all ranks: they end with the slowest one.
inline host::HostTimes slowest(const std::vector<RankTimes>& of_run) {
  host::HostTimes times;
  for (const RankTimes& t : of_run) {
    times.seconds = std::max(times.seconds, t.pass.seconds);
    times.copy_seconds = std::max(times.copy_seconds, t.copy_seconds);
    times.kernel_seconds += t.kernel_seconds;
  }
  return times;
}

// Adds the checks of all ranks up.
inline verify::Verdict of_all_ranks(Communicator& ranks, const verify::Verdict& own) {
  verify::Verdict all;
  for (const verify::Verdict& verdict : gather(ranks, "verdicts", own))
    if (verdict.compared > 0) verify::add_part(verdict, all);
  return all;
}

// Adds the check of a part of the results, which begins there.
inline void add_part_at(std::int64_t row, std::int64_t col, verify::Verdict part,
                        verify::Verdict& all) {
  part.worst_row += row;
  part.worst_col += col;
  if (part.compared > 0) verify::add_part(part, all);
}

// Adds the self-checks of all ranks up. They have found nothing wrong, or the pass had ended.
inline verify::Checksums of_all_ranks(Communicator& ranks, const verify::Checksums& own) {
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
                         return layer_.template forward<T>(in, out, options, times);
                       });
      case Pass::GradA:
        return product({q_grad_, &GroupPart::outputs, &GroupPart::inputs}, report,
                       [this](auto in, auto out, const auto& options, PassTimes& times) {
                         return layer_.template grad_a<T>(in, out, options, times);
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

  std::int64_t groups() const { return layer_.facts().problem.size.g; }

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
    const auto once = [&](const layer::PassOptions& options) {
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
    measure(report, [&](const layer::PassOptions& options, PassTimes& times) {
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
                      sparse::inside(rows_of_matrix(pass, part.group, rows), rows.size(), in.rows),
                      in, out.view().sub(own_rows, {0, out.cols()}), layer_.rounding(pass)),
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
    measure(report, [&](const layer::PassOptions& options, PassTimes& times) {
      return layer_.template grad_w<T>(q_grad.view(), s.view(), values, options, times);
    });
    verify::Verdict verdict;
    std::vector<sparse::Csr<float>> gradients;
    auto next = values.begin();
    for (const GroupPart& part : layer_.parts()) {
      const sparse::Csr<float>& matrix = layer_.weights(part.group);
      sparse::Csr<float>& own = gradients.emplace_back(matrix);
      std::copy_n(next, own.values.size(), own.values.begin());
      next += std::ssize(own.values);
      const std::int64_t rows = part.rows.size(), cols = part.columns.size();
      if (!is_checked_ || rows == 0) continue;
      add_part_at(part.rows.begin, part.columns.begin,
                  verify::verify_gradient<T>(
                      sparse::inside(matrix, rows, cols), sparse::inside(own, rows, cols),
                      rows_in(q_grad_, part.group, part.rows),
                      rows_in(s_, part.group, part.columns), layer_.rounding(Pass::GradW)),
                  verdict);
    }
    if (is_checked_) report.verdict = of_all_ranks(ranks_, verdict);
    if (is_kept_ && io::can_read_npz()) keep(gradients);
  }

  // Returns the gradients of a group of all ranks, on the first one. `own` has those of this rank's
  // part, which begins there.
  sparse::Csr<float> whole(const sparse::Coo<float>& own) {
    sparse::Coo<float> all{
        .rows = own.rows, .cols = own.cols, .block = own.block, .row = {}, .col = {}, .values = {}};
    all.row = to_first("rows of the gradients", own.row);
    all.col = to_first("columns of the gradients", own.col);
    all.values = to_first("gradients", own.values);
    return sparse::inside(sparse::to_csr(all), weights_.layer.rows, weights_.layer.cols);
  }

  // Stores the gradients of all ranks, on the first one.
  void keep(const std::vector<sparse::Csr<float>>& own) {
    const Problem problem = layer_.facts().problem;
    const Dims size = problem.size_in_blocks();
    const BlockShape block = problem.block;
    std::vector<sparse::Csr<float>> all;
    for (std::int64_t group = 0; group < groups(); ++group) {
      sparse::Coo<float> places{.rows = size.x, .cols = size.y, .block = block};
      for (std::size_t i = 0; i < own.size(); ++i) {
        const GroupPart& part = layer_.parts()[i];
        if (part.group != group) continue;
        places = sparse::to_coo(own[i]);
        places.rows = size.x;
        places.cols = size.y;
        for (std::int32_t& row : places.row)
          row += static_cast<std::int32_t>(ceil_div(part.rows.begin, block.rows));
        for (std::int32_t& col : places.col)
          col += static_cast<std::int32_t>(ceil_div(part.columns.begin, block.cols));
      }
      all.push_back(whole(places));
    }
    if (is_first_) keep_gradients(all, run_.files);
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

}  // namespace tessera::tools::internal
