// The functions of FullyConnected that look at the weight gradient outside the pattern.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/planner/dense_plan.hpp"
#include "tessera/runtime/internal/dense_pass.hpp"
#include "tessera/runtime/internal/fully_connected_state.hpp"
#include "tessera/runtime/internal/layer_check.hpp"
#include "tessera/runtime/internal/own_pass.hpp"

namespace tessera::runtime {

void FullyConnected::State::check_gradient_operands(const char* name, MatrixShape q_grad,
                                                    MatrixShape s) const {
  const Dims& size = problem.size;
  if (q_grad == MatrixShape{size.g * size.x, size.z} && s == MatrixShape{size.g * size.y, size.z})
    return;
  throw_invalid(fmt::format(
      "{}: q_grad is {} x {} and s is {} x {}; this layer needs {} x {} and {} x {}", name,
      q_grad.rows, q_grad.cols, s.rows, s.cols, size.g * size.x, size.z, size.g * size.y, size.z));
}

// Doubling the splits takes few plans; a part is then at least about half of the largest that fits.
std::int64_t FullyConnected::dense_grad_w_splits() {
  const auto call = state().caller.enter("dense_grad_w_splits");
  const device::Machine machine = state().beside_buckets();
  Problem part = state().problem;
  part.block = {1, 1};
  part.partials_type = DataType::Float;
  part.grad_a = false;
  part.grad_w = true;
  for (std::int64_t splits = 1;; splits *= 2) {
    part.size.x = ceil_div(state().problem.size.x, splits);
    const planner::DensePlanResult made =
        planner::plan_dense(part, machine, {.partials_type = DataType::Float});
    if (made.plan &&
        internal::OwnPass<internal::DensePass>::memory_of(machine, *made.plan, Pass::GradW)
                .high_water() <= machine.tile_memory)
      return ceil_div(state().problem.size.x, part.size.x);
    if (part.size.x == 1)
      throw Error(ErrorCode::NoSolution,
                  "dense_grad_w_splits: not even one row of a group fits beside the buckets: " +
                      (made.reason.empty() ? "its results take too much memory" : made.reason));
  }
}

DenseGradW& FullyConnected::State::search_for_places(std::int64_t k) {
  if (search && searched == k) return *search;
  Problem one = problem;
  one.size.g = 1;
  one.grad_w = true;
  one.partials_type = DataType::Float;
  search.reset();  // its memory is free before that of the next one is allocated
  search.emplace(search_for(one, k, beside_buckets(), mode, executor));
  searched = k;
  return *search;
}

template <class T>
bool FullyConnected::largest_gradients(std::int64_t k, MatrixView<const T> q_grad,
                                       MatrixView<const T> s, codelets::BlockScore score,
                                       std::int64_t group, const PassOptions& options,
                                       LargestGradients& found) {
  const auto call = state().caller.enter("largest_gradients");
  state().check_call<T>("largest_gradients");
  const Dims& size = state().problem.size;
  const sparse::Csr<float>& taken = weights(group);  // refuses a group that there is not
  state().check_gradient_operands("largest_gradients", {q_grad.rows, q_grad.cols},
                                  {s.rows, s.cols});
  found = {};
  if (k == 0) return true;
  // A number out of range is refused by the search, which is planned for one in range.
  const std::int64_t free = taken.block_rows() * taken.block_cols() - taken.blocks();
  const std::int64_t most = std::max<std::int64_t>(free, 1);
  const std::string name = size.g == 1 ? "weights" : fmt::format("weights of group {}", group);
  return state()
      .search_for_places(std::clamp<std::int64_t>(k, 1, most))
      .largest<T>(taken, k, score, internal::group_of(q_grad, size.x, group),
                  internal::group_of(s, size.y, group), options, found, name);
}

template <class T>
LargestGradients FullyConnected::largest_gradients(std::int64_t k, MatrixView<const T> q_grad,
                                                   MatrixView<const T> s,
                                                   codelets::BlockScore score, std::int64_t group) {
  return cost_of_whole<LargestGradients>([&](LargestGradients& found) {
    return largest_gradients<T>(k, q_grad, s, score, group, PassOptions(), found);
  });
}

#define TESSERA_DENSE_GRADIENTS(T)                                                                 \
  template LargestGradients FullyConnected::largest_gradients(                                     \
      std::int64_t, MatrixView<const T>, MatrixView<const T>, codelets::BlockScore, std::int64_t); \
  template bool FullyConnected::largest_gradients(                                                 \
      std::int64_t, MatrixView<const T>, MatrixView<const T>, codelets::BlockScore, std::int64_t,  \
      const PassOptions&, LargestGradients&);
TESSERA_DENSE_GRADIENTS(float)
TESSERA_DENSE_GRADIENTS(Half)
TESSERA_DENSE_GRADIENTS(BFloat16)
#undef TESSERA_DENSE_GRADIENTS

}  // namespace tessera::runtime
