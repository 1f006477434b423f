#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/device/ledger.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/plan.hpp"

namespace tessera::tools {

// A measured layer: dynamic sparse matrix [side][side] times dense [side][batch], half with float
// sums, the best over batches.
struct PublishedPoint {
  std::int64_t side = 0;
  BlockShape block;
  double density = 0;
  double teraflops = 0;  // of non-zeros: 2 * side^2 * batch * density / time
};

// Seven points of PopSparse on one Bow IPU, read off published plots (arXiv 2303.16999), +-3 %.
std::vector<PublishedPoint> published_points();

// Columns m_eq_k, block (side of square blocks), density (a number or a fraction), tflops, in any
// order; others are skipped. Error{BadInput} with place, value and legal range.
std::vector<PublishedPoint> read_published(std::string_view text, std::string_view name);

// How the published runs are repeated.
struct Repetition {
  device::Machine machine;
  std::vector<std::int64_t> batches;  // the best of these counts
  std::int64_t patterns = 41;         // random patterns: each gives a best of its own
};

// One pattern at one batch.
struct RepeatedRun {
  std::int64_t batch = 0;
  planner::Plan plan;
  device::Ledger ledger;
  std::int64_t moved_blocks = 0;  // spilled
  double teraflops = 0;
};

// A point and the bests of all patterns, slowest first; none where no plan fits.
struct Repeated {
  PublishedPoint point;
  std::vector<RepeatedRun> runs;

  bool fits() const { return !runs.empty(); }
  const RepeatedRun& median() const { return runs[runs.size() / 2]; }
  // What a random pattern is expected to reach: where about half of them spill, the runs are of two
  // kinds with nothing between, and their median is one or the other.
  double mean_teraflops() const;
  double spilled_share() const;  // of the runs
  // Ours over the published, less 1.
  double error() const { return mean_teraflops() / point.teraflops - 1; }
};

// Runs a point the way it was measured: PopLibs' planner (poplibs_parity) for Fwd and GradA
// together, bucket room of 30 %, temporary memory within 60 % of a tile (the other 40 % hold what
// no plan counts: the program, exchange tables, the caller's tensors), PopLibs' order of spilling,
// operands spread linearly over all tiles; Fwd is timed. Computes every product for real.
Repeated repeat(const PublishedPoint& point, const Repetition& how, Executor& executor);

// A table with terms, and the median and worst error. <= 100 columns.
std::string to_text(const std::vector<Repeated>& points, const Repetition& how);

// Tab-separated: the points' columns, ours beside.
std::string to_table(const std::vector<Repeated>& points);

}  // namespace tessera::tools
