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

// A published measurement of a layer: a dynamic sparse matrix [side][side] times a dense matrix
// [side][batch], in half with float sums; the best over all batches.
struct PublishedPoint {
  std::int64_t side = 0;
  BlockShape block;
  double density = 0;
  double teraflops = 0;  // 10^12 flops per second of non-zeros: 2 * side^2 * batch * density / time
};

// Returns seven points of PopSparse on one Bow IPU. They were read off published plots (arXiv
// 2303.16999) with an accuracy of +-3 %.
std::vector<PublishedPoint> published_points();

// Reads points from a tab-separated table with the columns m_eq_k, block (the side of square
// blocks), density (a number or a fraction) and tflops, in any order. Other columns are ignored.
// Throws Error{BadInput} with place, value and legal range.
std::vector<PublishedPoint> read_published(std::string_view text, std::string_view name);

// The settings for repeating the published runs.
struct Repetition {
  device::Machine machine;
  std::vector<std::int64_t> batches;  // the best of these is reported
  std::int64_t patterns = 41;         // number of random patterns; each has its own best
};

// A run of one pattern with one batch.
struct RepeatedRun {
  std::int64_t batch = 0;
  planner::Plan plan;
  device::Ledger ledger;
  std::int64_t moved_blocks = 0;  // spilled blocks
  double teraflops = 0;
};

// A point and the best run of each pattern, slowest first. There are no runs if no plan fits.
struct Repeated {
  PublishedPoint point;
  std::vector<RepeatedRun> runs;

  bool fits() const { return !runs.empty(); }
  const RepeatedRun& median() const { return runs[runs.size() / 2]; }

  // Returns the rate that a random pattern is expected to reach. The mean is used because, if about
  // half of the patterns spill, the runs fall into two separate groups and the median belongs to
  // one of them.
  double mean_teraflops() const;

  // Returns the share of the runs in which blocks spill.
  double spilled_share() const;

  // Returns the modelled rate divided by the published one, minus 1.
  double error() const { return mean_teraflops() / point.teraflops - 1; }
};

// Repeats a point under the conditions of the measurement: PopLibs' planner (poplibs_parity) for
// Fwd and GradA together, 30 % of extra bucket capacity, temporary memory of at most 60 % of a tile
// (the other 40 % contain what no plan counts: the program, exchange tables and the caller's
// tensors), PopLibs' order of spilling, and operands spread linearly over all tiles. Fwd is timed.
// Every product is really computed.
Repeated repeat(const PublishedPoint& point, const Repetition& how, Executor& executor);

// Returns a table of the points with the terms of their cycles, and the median and worst error.
// Lines have at most 100 columns.
std::string to_text(const std::vector<Repeated>& points, const Repetition& how);

// Returns a tab-separated table: the columns of the points, and those of the repeated runs.
std::string to_table(const std::vector<Repeated>& points);

}  // namespace tessera::tools
