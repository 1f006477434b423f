#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/planner/static_plan.hpp"
#include "tessera/runtime/static_layer.hpp"
#include "tessera/tests/planner/static_pattern.hpp"
#include "tessera/tests/support/gradients.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::runtime {

// A layer with a static pattern: a matrix and a plan for each group.
struct StaticCase {
  Problem problem;
  device::Machine machine = device::machine_preset("gc200");
  std::vector<sparse::CheckedCsr<float>> weights;
  std::vector<planner::StaticPlan> plans;

  std::string name() const {
    return to_string(problem) + " on " + std::to_string(machine.tiles) + " tiles";
  }
  StaticLayer layer(Executor& executor,
                    device::ExchangeMode mode = device::ExchangeMode::Share) const {
    return StaticLayer(problem, weights, plans, machine, mode, executor);
  }
};

// Values of +1 and -1, with which all sums are exact, or of -2 .. 2.
enum class Values { Signs, Any };

inline void fill(sparse::Csr<float>& matrix, Values values, std::uint64_t seed) {
  Random random(seed);
  matrix.values.resize(std::size_t(matrix.blocks() * matrix.block.area()));
  for (float& v : matrix.values)
    v = values == Values::Signs ? (random.below(2) == 0 ? 1.0f : -1.0f)
                                : float(random.unit()) * 4.0f - 2.0f;
}

// Takes the plans that PopLibs would make.
inline void plan_as_poplibs(StaticCase& c) {
  const device::Machine machine = machine_of_group(c.machine, c.problem.size.g);
  Problem of_group = c.problem;
  of_group.size.g = 1;
  c.plans.clear();
  for (const sparse::CheckedCsr<float>& matrix : c.weights) {
    auto result = planner::plan_static_as_poplibs(of_group, planner::view_of(*matrix), machine);
    ASSERT_TRUE(result.plan) << c.name() << ": " << result.reason;
    c.plans.push_back(*std::move(result.plan));
  }
}

// A layer of the size of its matrix, planned as PopLibs would.
inline StaticCase static_case(sparse::Csr<float> matrix, std::int64_t batch, DataType type,
                              std::int64_t tiles, Values values = Values::Any,
                              std::int64_t groups = 1) {
  StaticCase c;
  c.problem = {.size = {groups, matrix.rows, matrix.cols, batch},
               .block = matrix.block,
               .data_type = type,
               .grad_a = true,
               .grad_w = true};
  c.machine.tiles = tiles;
  for (std::int64_t g = 0; g < groups; ++g) {
    fill(matrix, values, std::uint64_t(g) + 1);
    c.weights.push_back(sparse::checked(matrix));
  }
  plan_as_poplibs(c);
  return c;
}

// Gives GradA tiles of its own, with every block of every group on one drawn at random: two parts
// of the batch with as many columns as fit whole vectors, and layouts of different sizes.
inline void give_grad_a_random_tiles(StaticCase& c, Random& random) {
  const std::int64_t tiles = machine_of_group(c.machine, c.problem.size.g).tiles;
  for (std::size_t g = 0; g < c.plans.size(); ++g) {
    if (c.plans[g].parts.empty() || tiles < 2) continue;
    planner::StaticAssignment& own = c.plans[g].grad_a.emplace();
    const std::int64_t columns = c.plans[g].parts.back().end, half = columns / 8 * 4;
    std::int64_t first_tile = 0;
    for (const Range z : {Range{0, half}, Range{half, columns}}) {
      if (z.size() == 0) continue;
      own.parts.push_back({z.begin, z.end, first_tile, std::ssize(own.layouts)});
      planner::StaticLayout& layout = own.layouts.emplace_back();
      layout.tiles.resize(std::size_t(z.begin == 0 ? (tiles + 1) / 2 : tiles / 2));
      first_tile += std::ssize(layout.tiles);
      for (std::int64_t b = 0; b < c.weights[g]->blocks(); ++b)
        layout.tile_of.push_back(std::int32_t(random.below(layout.tiles.size())));
    }
  }
}

// The results of all passes.
template <class T>
struct StaticResults {
  Matrix<T> s, q_grad, q, s_grad;
  std::vector<sparse::Csr<float>> gradients;
  std::vector<device::Ledger> ledgers;
};

template <class T>
Matrix<T> static_operand(std::int64_t rows, std::int64_t cols, Values values, std::uint64_t seed) {
  Random random(seed);
  Matrix<T> m(rows, cols);
  for (T& v : m.elements())
    v = T(values == Values::Signs ? (random.below(2) == 0 ? 1.0f : -1.0f)
                                  : float(random.unit()) * 2.0f - 1.0f);
  return m;
}

template <class T>
StaticResults<T> run_all(const StaticCase& c, StaticLayer& layer, Values values = Values::Any,
                         const PassOptions& options = {}) {
  const auto [g, x, y, z] = c.problem.size;
  StaticResults<T> r{
      static_operand<T>(g * y, z, values, 2), static_operand<T>(g * x, z, values, 3),
      static_operand<T>(g * x, z, values, 4),  // overwritten
      static_operand<T>(g * y, z, values, 5), std::vector<sparse::Csr<float>>(std::size_t(g)),
      std::vector<device::Ledger>(3)};
  EXPECT_TRUE(layer.forward<T>(r.s.view(), r.q.view(), options, r.ledgers[0]));
  EXPECT_TRUE(layer.grad_a<T>(r.q_grad.view(), r.s_grad.view(), options, r.ledgers[1]));
  std::vector<float> all(std::size_t(layer.values()));
  EXPECT_TRUE(layer.grad_w<T>(r.q_grad.view(), r.s.view(), all, options, r.ledgers[2]));
  test::split_by_group(layer, all, r.gradients);
  return r;
}

// Expects the bits of two runs to be the same.
template <class T>
void expect_same(const StaticResults<T>& a, const StaticResults<T>& b) {
  const auto same = [](const Matrix<T>& p, const Matrix<T>& q) {
    return std::ranges::equal(p.elements(), q.elements(),
                              [](T m, T n) { return float(m) == float(n); });
  };
  EXPECT_TRUE(same(a.q, b.q));
  EXPECT_TRUE(same(a.s_grad, b.s_grad));
  EXPECT_EQ(a.gradients, b.gradients);
  EXPECT_EQ(a.ledgers, b.ledgers);
}

}  // namespace tessera::runtime
