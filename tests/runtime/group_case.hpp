#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "tessera/tests/runtime/layer_case.hpp"
#include "tessera/tests/support/gradients.hpp"

namespace tessera::runtime {

// A layer of several groups that are cut alike; `cut` says how, its weights are not used.
struct GroupCase {
  LayerCase cut;
  std::vector<sparse::Csr<float>> weights;

  std::int64_t groups() const { return std::ssize(weights); }
  std::int64_t rows() const { return weights[0].rows; }
  std::int64_t cols() const { return weights[0].cols; }
  LayerCase layer_of(std::size_t group) const {
    LayerCase c = cut;
    c.weights = weights[group];
    return c;
  }
  // One plan whose buckets hold any of the groups.
  planner::Plan plan(std::int64_t group_count) const {
    planner::Plan plan = layer_of(0).plan();
    for (std::size_t g = 1; g < weights.size(); ++g) {
      const planner::Plan other = layer_of(g).plan();
      plan.nonzeros_per_bucket = std::max(plan.nonzeros_per_bucket, other.nonzeros_per_bucket);
      plan.fwd_meta_words = std::max(plan.fwd_meta_words, other.fwd_meta_words);
      plan.grad_a_meta_words = std::max(plan.grad_a_meta_words, other.grad_a_meta_words);
    }
    plan.partition.g = group_count;
    return plan;
  }
  Problem problem(std::int64_t group_count) const {
    Problem problem = layer_of(0).problem();
    problem.size.g = group_count;
    return problem;
  }
  device::Machine machine(std::int64_t group_count) const {
    device::Machine machine = layer_of(0).machine();
    machine.tiles *= group_count;
    return machine;
  }
};

// The results of the three passes for groups that ran together.
template <class T>
struct GroupRun {
  Matrix<T> q, s_grad;
  std::vector<sparse::Csr<float>> gradients;
  std::vector<device::Ledger> ledgers;
  std::vector<partitioner::Travel> travel;
};

// Operands of all groups, one below the other.
template <class T>
struct GroupOperands {
  explicit GroupOperands(const GroupCase& c)
      : s(random_matrix<T>(c.groups() * c.cols(), c.cut.batch, c.cut.seed + 10)),
        q_grad(random_matrix<T>(c.groups() * c.rows(), c.cut.batch, c.cut.seed + 20)) {}
  Matrix<T> s, q_grad;
};

// The rows of one group, or of several in a row.
template <class T>
MatrixView<T> rows_of(MatrixView<T> all, std::int64_t rows, Range groups) {
  return all.sub({groups.begin * rows, groups.end * rows}, {0, all.cols});
}

// Runs these groups of the case as one layer.
template <class T>
GroupRun<T> run_groups(const GroupCase& c, Range which, const How& how = {}) {
  const std::int64_t n = which.size();
  const auto executor = make_executor(how.executor, how.threads);
  FullyConnected layer(c.problem(n), c.plan(n), c.machine(n), how.mode, *executor);
  const std::span<const sparse::Csr<float>> weights(c.weights.data() + which.begin, std::size_t(n));
  const auto misfit =
      layer.set_weights(sparse::checked(std::vector(weights.begin(), weights.end())),
                        {.force_spills = c.cut.force_spills});
  EXPECT_FALSE(misfit) << misfit->message;
  const GroupOperands<T> in(c);
  const auto s = rows_of(in.s.view(), c.cols(), which);
  const auto q_grad = rows_of(in.q_grad.view(), c.rows(), which);
  GroupRun<T> r{Matrix<T>(n * c.rows(), c.cut.batch),
                Matrix<T>(n * c.cols(), c.cut.batch),
                std::vector<sparse::Csr<float>>(std::size_t(n)),
                {},
                {}};
  r.ledgers.push_back(layer.forward<T>(s, r.q.view()));
  r.ledgers.push_back(layer.grad_a<T>(q_grad, r.s_grad.view()));
  r.ledgers.push_back(test::grad_w_by_group<T>(layer, q_grad, s, r.gradients));
  for (std::int64_t g = 0; g < n; ++g) r.travel.push_back(layer.buckets(g).travel);
  return r;
}

// Whether rows [begin, end) of `all` hold what `part` holds.
template <class T>
bool holds_rows(const Matrix<T>& all, std::int64_t begin, const Matrix<T>& part) {
  const auto from = all.elements().begin() + begin * all.cols();
  return std::equal(part.elements().begin(), part.elements().end(), from);
}

}  // namespace tessera::runtime
