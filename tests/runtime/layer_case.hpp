#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/sparse/restrict.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::runtime {

// A layer with a plan written by hand, so that a test says itself how it is cut and how much room
// the buckets have.
struct LayerCase {
  sparse::Csr<float> weights;
  std::int64_t batch = 4;
  DataType type = DataType::Float;
  Dims partition{1, 2, 2, 1};
  double room = 4.0;  // capacity of a bucket / what it needs when everything stays at home
  bool travelling_buckets = false;  // in GradW
  bool separate_grad_a = false;
  bool force_spills = false;
  bool dense = false;        // planned by the planner: R as dense blocks, cut as said above
  BlockShape missing{0, 0};  // rows and columns of the last blocks that the layer does not have
  std::uint64_t seed = 1;

  std::string name() const {
    return to_string(type) + " " + std::to_string(weights.rows) + "x" +
           std::to_string(weights.cols) + " block " + std::to_string(weights.block.rows) + "x" +
           std::to_string(weights.block.cols) + " batch " + std::to_string(batch) + " on " +
           to_string(partition) + (travelling_buckets ? ", buckets travel" : ", operands travel") +
           (separate_grad_a ? ", separate GradA" : "") + (force_spills ? ", forced spills" : "") +
           (dense ? ", dense" : "") + (missing.area() > 0 ? ", last blocks not whole" : "") +
           ", seed " + std::to_string(seed);
  }
  Problem problem() const {
    return {.size = {1, weights.rows - missing.rows, weights.cols - missing.cols, batch},
            .block = weights.block,
            .density = 0.5,
            .data_type = type,
            .grad_a = true,
            .grad_w = true};
  }
  device::Machine machine() const {
    device::Machine machine = device::machine_preset("gc200");
    machine.tiles = std::max<std::int64_t>(partition.product(), 1);
    return machine;
  }
  planner::Plan plan() const { return dense ? planned_dense() : by_hand(); }

 private:
  planner::Plan by_hand() const;
  planner::Plan planned_dense() const;
};

// The most words and blocks any bucket needs when nothing spills, by counting cells.
inline std::pair<std::int64_t, std::int64_t> home_need(const LayerCase& c, const Dims& grain) {
  const auto stats_rows = c.weights.block_rows();
  std::int64_t most_rows = 0, most_blocks = 0;
  for (std::int64_t px = 0; px < c.partition.x; ++px)
    for (std::int64_t py = 0; py < c.partition.y; ++py) {
      const Range xs = share_of(c.weights.rows, grain.x, c.partition.x, px);
      const Range ys = share_of(c.weights.cols, grain.y, c.partition.y, py);
      std::int64_t rows = 0, blocks = 0;
      for (std::int64_t r = xs.begin / grain.x; r < std::min(xs.end / grain.x, stats_rows); ++r) {
        const std::int64_t before = blocks;
        for (auto b = c.weights.row_begin[std::size_t(r)];
             b < c.weights.row_begin[std::size_t(r) + 1]; ++b) {
          const std::int64_t col = c.weights.col[std::size_t(b)] * grain.y;
          blocks += ys.begin <= col && col < ys.end;
        }
        rows += blocks > before;
      }
      most_rows = std::max(most_rows, rows);
      most_blocks = std::max(most_blocks, ceil_div(blocks, c.partition.z));
    }
  return {most_rows, most_blocks};
}

inline planner::Plan LayerCase::planned_dense() const {
  planner::Options options;
  options.available_memory_proportion = 1.0;
  options.constraints = {.x = partition.x,
                         .y = partition.y,
                         .z = partition.z,
                         .grad_w_exchange_buckets = travelling_buckets,
                         .use_dense = true};
  const PatternStats stats = sparse::pattern_stats(weights);
  return planner::plan_or_throw(problem(), machine(), options, &stats);
}

inline planner::Plan LayerCase::by_hand() const {
  const bool element = weights.block.is_element();
  planner::Plan plan;
  plan.fwd = element ? planner::Method::ElementFwd : planner::Method::BlockFwd;
  plan.grad_a = !element          ? planner::Method::BlockTranspose
                : separate_grad_a ? planner::Method::ElementGradA
                                  : planner::Method::ElementTranspose;
  plan.grad_w = element ? planner::Method::ElementGradW : planner::Method::BlockGradW;
  plan.block = weights.block;
  const std::int64_t z_grain = !element ? 1 : type == DataType::Float ? 2 : 4;
  plan.grain = {1, weights.block.rows, weights.block.cols, z_grain};
  plan.partition = partition;
  plan.grad_w_exchange_buckets = travelling_buckets;
  const auto [rows, blocks] = home_need(*this, plan.grain);
  const auto capacity = static_cast<std::int64_t>(double(blocks) * room);
  plan.nonzeros_per_bucket = round_up(capacity * weights.block.area(), weights.block.area());
  const std::int64_t record =
      codelets::record_words({.element = element, .grad_w = true}, rows, blocks);
  plan.fwd_meta_words =
      Words(round_up(static_cast<std::int64_t>(double(record) * std::max(1.0, room)) + 1, 2));
  // Two words a value, rows and columns swapped: as many rows as values at worst, a few records.
  if (separate_grad_a) plan.grad_a_meta_words = Words(4 * 39 + 4 * capacity + 2);
  return plan;
}

// Everything the three passes of a layer give.
struct Results {
  std::vector<float> q, s_grad, gradient;
  std::vector<device::Ledger> ledgers;
  std::vector<verify::Verdict> verdicts;
  partitioner::Travel travel;
  partitioner::SpillStats spill;

  friend bool same(const Results& a, const Results& b) {
    return a.q == b.q && a.s_grad == b.s_grad && a.gradient == b.gradient && a.ledgers == b.ledgers;
  }
};

// The ways to run a case, none of which may change a result.
struct How {
  device::ExchangeMode mode = device::ExchangeMode::Share;
  ExecutorKind executor = ExecutorKind::Threads;
  int threads = 2;
};

// Options of a pass that keeps the figures of tiles.
inline TilePass keeping(device::TileLedger& tiles) {
  TilePass options;
  options.tiles.tiles = &tiles;
  return options;
}

template <class T>
std::vector<float> as_float(const Matrix<T>& matrix) {
  std::vector<float> result;
  for (const T v : matrix.elements()) result.push_back(float(v));
  return result;
}

// The operands of the passes of a case, in whole blocks: 0 in the rows that the layer has not.
template <class T>
struct Operands {
  explicit Operands(const LayerCase& c)
      : s(random_matrix<T>(c.weights.cols, c.batch, c.seed + 10)),
        q_grad(random_matrix<T>(c.weights.rows, c.batch, c.seed + 20)) {
    const Dims size = c.problem().size;
    for (std::int64_t y = size.y; y < s.rows(); ++y)
      for (std::int64_t z = 0; z < size.z; ++z) s(y, z) = T();
    for (std::int64_t x = size.x; x < q_grad.rows(); ++x)
      for (std::int64_t z = 0; z < size.z; ++z) q_grad(x, z) = T();
  }
  Matrix<T> s, q_grad;
};

// The weights as the layer holds them, as elements, without the rows and columns it does not have.
template <class T>
sparse::Csr<float> reference_elements(const LayerCase& c) {
  sparse::Csr<float> rounded = sparse::with_block(c.weights, {1, 1});
  for (float& v : rounded.values) v = float(T(v));
  const Dims size = c.problem().size;
  return sparse::cropped(rounded, size.x, size.y);
}

template <class T>
std::optional<Results> run_typed(const LayerCase& c, const How& how) {
  const auto executor = make_executor(how.executor, how.threads);
  const planner::Plan plan = c.plan();
  FullyConnected layer(c.problem(), plan, c.machine(), how.mode, *executor);
  if (layer.set_weights(c.weights, {.force_spills = c.force_spills})) return std::nullopt;

  const Operands<T> in(c);
  const Dims size = c.problem().size;
  const auto s = in.s.view().sub({0, size.y}, {0, size.z});
  const auto q_grad = in.q_grad.view().sub({0, size.x}, {0, size.z});
  Matrix<T> q(size.x, size.z), s_grad(size.y, size.z);
  sparse::Csr<float> gradient = layer.weights();
  Results r;
  r.ledgers.push_back(layer.forward<T>(s, q.view()));
  r.ledgers.push_back(layer.grad_a<T>(q_grad, s_grad.view()));
  r.ledgers.push_back(layer.grad_w<T>(q_grad, s, gradient.values));
  const verify::Rounding rounding{c.type, DataType::Float, plan.tiles_used()};
  const sparse::Csr<float> r_elements = reference_elements<T>(c);
  r.verdicts.push_back(verify::verify_product<T>(r_elements, s, std::as_const(q).view(), rounding));
  r.verdicts.push_back(verify::verify_product<T>(sparse::transpose(r_elements), q_grad,
                                                 std::as_const(s_grad).view(), rounding));
  r.verdicts.push_back(
      verify::verify_gradient<T>(c.weights, gradient, in.q_grad.view(), in.s.view(), rounding));
  r.q = as_float(q);
  r.s_grad = as_float(s_grad);
  r.gradient = gradient.values;
  r.travel = layer.buckets().travel;
  r.spill = layer.buckets().stats;
  return r;
}

// None when the pattern does not fit its buckets.
inline std::optional<Results> run_case(const LayerCase& c, const How& how = {}) {
  return with_type(c.type, [&]<class T>(T) { return run_typed<T>(c, how); });
}

inline void expect_right(const LayerCase& c, const How& how = {}) {
  SCOPED_TRACE(c.name());
  const std::optional<Results> results = run_case(c, how);
  ASSERT_TRUE(results) << "does not fit";
  for (const verify::Verdict& verdict : results->verdicts)
    EXPECT_TRUE(verdict.ok()) << to_string(verdict);
}

// A pattern with values that are not round numbers.
inline sparse::Csr<float> random_weights(std::int64_t rows, std::int64_t cols, BlockShape block,
                                         double density, std::uint64_t seed) {
  sparse::Csr<float> weights = sparse::random_pattern(rows, cols, block, density, seed);
  Random random(seed + 100);
  for (float& v : weights.values) v = float(2 * random.unit() - 1);
  return weights;
}

}  // namespace tessera::runtime
