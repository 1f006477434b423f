#include "tessera/distributed/batch_layer.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "tessera/base/half.hpp"
#include "tessera/distributed/agreement.hpp"

namespace tessera::distributed {
namespace {

Problem checked(Problem problem) {
  if (problem.size.z % 2 == 0) return problem;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("a batch of {} columns cannot be split over ranks with the same bits for "
                          "any number of them; it must be even",
                          problem.size.z));
}

}  // namespace

BatchLayer::BatchLayer(const Problem& problem, const host::HostCpu& cpu, Executor& executor,
                       Communicator& ranks, std::int64_t leaves)
    : problem_(checked(problem)),
      ranks_(ranks),
      leaves_(leaves),
      own_(TreeSum(ranks, leaves, 0).leaves()),
      local_(problem, cpu, executor) {}

// Leaves are pairs of columns, so that no panel of any rank ends with a single column.
Range BatchLayer::leaf_columns(std::int64_t leaf) const {
  const std::int64_t pairs = problem_.size.z / 2;
  return {pairs * leaf / leaves_ * 2, pairs * (leaf + 1) / leaves_ * 2};
}

Range BatchLayer::columns() const {
  if (own_.size() == 0) return {0, 0};
  return {leaf_columns(own_.begin).begin, leaf_columns(own_.end - 1).end};
}

template <class T>
void BatchLayer::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                        std::span<float> gradients) {
  const Range own = columns();
  if (q_grad.cols != own.size() || s.cols != own.size())
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("grad_w: dQ has {} columns and S {}, but rank {} has {} of the batch",
                            q_grad.cols, s.cols, ranks_.rank(), own.size()));
  if (!is_compared_) {
    std::vector<sparse::Csr<float>> weights;
    for (std::int64_t g = 0; g < problem_.size.g; ++g) weights.push_back(local_.weights(g));
    require_same(ranks_, "grad_w",
                 {given_problem(problem_),
                  given_weights(weights),
                  {"number of leaves", Digest().add(leaves_).value(), std::to_string(leaves_)}});
    is_compared_ = true;
  }
  TreeSum sum(ranks_, leaves_, std::ssize(gradients));
  leaf_.resize(gradients.size());
  for (std::int64_t leaf = own_.begin; leaf < own_.end; ++leaf) {
    const Range whole = leaf_columns(leaf);
    const Range part{whole.begin - own.begin, whole.end - own.begin};
    local_.grad_w<T>(q_grad.sub({0, q_grad.rows}, part), s.sub({0, s.rows}, part), leaf_);
    sum.add(leaf_);
  }
  sum.finish(gradients);
}

template void BatchLayer::grad_w(MatrixView<const float>, MatrixView<const float>,
                                 std::span<float>);
template void BatchLayer::grad_w(MatrixView<const Half>, MatrixView<const Half>, std::span<float>);
template void BatchLayer::grad_w(MatrixView<const BFloat16>, MatrixView<const BFloat16>,
                                 std::span<float>);

}  // namespace tessera::distributed
