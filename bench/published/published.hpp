#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/data_type.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/device/ledger.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/plan.hpp"

namespace tessera::bench {

// A published measurement of a layer: a dynamic sparse matrix [side][side] times a dense matrix
// [side][batch], with float sums; the best over all batches.
struct PublishedPoint {
  std::int64_t side = 0;
  BlockShape block;
  double density = 0;
  double teraflops = 0;  // 10^12 flops per second of non-zeros: 2 * side^2 * batch * density / time
  DataType type = DataType::Half;  // Half or Float
};

// Returns all 17 points of PopSparse on one Bow IPU. They were read off published plots (arXiv
// 2303.16999) with an accuracy of +-3 %; the first seven are those that the model was first
// compared with. The two in float are a published speed-up of two digits times a dense rate.
std::vector<PublishedPoint> published_points();

// Reads points from a tab-separated table with the columns m_eq_k, block (the side of square
// blocks), density (a number or a fraction) and tflops, in any order. A column `type` may say half
// or float; half is the default. Other columns are ignored. Throws Error{BadInput} with place,
// value and legal range.
std::vector<PublishedPoint> read_published(std::string_view text, std::string_view name);

// The settings for repeating the published runs.
struct Repetition {
  device::Machine machine;
  std::vector<std::int64_t> batches;  // the best of these is reported
  std::int64_t patterns = 0;          // number of random patterns; each has its own best
};

// A run of one pattern with one batch.
struct RepeatedRun {
  std::int64_t batch = 0;
  planner::Plan plan;
  device::Ledger ledger;
  std::int64_t moved_blocks = 0;  // spilled blocks
  double teraflops = 0;
};

// A point, the best run of the pattern that was measured, and those of random patterns, slowest
// first. There are no runs if no plan fits.
struct Repeated {
  PublishedPoint point;
  std::optional<RepeatedRun> measured;
  std::vector<RepeatedRun> runs;
  std::vector<RepeatedRun> by_batch;         // of the measured pattern, in the order of the batches
  std::vector<std::int64_t> larger_batches;  // whose plans take more than 60 % of a tile

  bool fits() const { return measured.has_value(); }

  // Returns the share of the random patterns in which blocks spill.
  double spilled_share() const;

  // Returns the modelled rate of the measured pattern divided by the published one, minus 1.
  double error() const { return measured->teraflops / point.teraflops - 1; }
};

// Repeats a point under the conditions of the measurement: PopLibs' planner (poplibs_parity) for
// Fwd and GradA together, 30 % of extra bucket capacity, the pattern that was measured
// (measured_pattern), PopLibs' order of spilling and its loops over what has spilled
// (nested_loops), and operands spread evenly over all tiles. Plans
// take at most 60 % of a tile for temporary data or, where none does, at most 70 %: PopLibs goes on
// to larger plans, and the largest whose published rate is known takes 67 %. The rest contains what
// no plan counts: the program, exchange tables and the caller's tensors. Fwd is timed. Every
// product is really computed.
Repeated repeat(const PublishedPoint& point, const Repetition& how, Executor& executor);

// The median and the largest of the magnitudes of errors; 0 if there are none.
struct ErrorSummary {
  double median = 0, worst = 0;
};
ErrorSummary summary_of(std::vector<double> errors);

// Does the same for points. A point without a plan has the error 1.
ErrorSummary summary_of(const std::vector<Repeated>& points);

// Returns a table of the points with the terms of their cycles, and the median and worst error.
// Lines have at most 100 columns.
std::string to_text(const std::vector<Repeated>& points, const Repetition& how);

// Returns a tab-separated table: the columns of the points, and those of the repeated runs.
std::string to_table(const std::vector<Repeated>& points);

}  // namespace tessera::bench
