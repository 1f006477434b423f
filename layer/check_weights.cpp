#include "tessera/layer/check_weights.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"
#include "tessera/sparse/value_range.hpp"

namespace tessera::layer {

void check_weight_matrix(const Problem& problem, const sparse::Csr<float>& weights) {
  const Dims whole = problem.size_in_blocks();
  if (weights.rows != whole.x || weights.cols != whole.y)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("the weight matrix is {} x {}; this layer needs {} x {}", weights.rows,
                            weights.cols, whole.x, whole.y));
  if (weights.block != problem.block)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("the weights have {}x{} blocks; this layer was planned for {}x{}",
                            weights.block.rows, weights.block.cols, problem.block.rows,
                            problem.block.cols));
}

void check_weights(const Problem& problem, std::span<const sparse::CheckedCsr<float>> weights) {
  if (std::ssize(weights) != problem.size.g)
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("{} weight matrices were given; this layer needs one for each of its {} "
                    "groups",
                    weights.size(), problem.size.g));
  for (const sparse::CheckedCsr<float>& matrix : weights) {
    check_weight_matrix(problem, *matrix);
    sparse::check_range(matrix->values, problem.data_type);
  }
}

}  // namespace tessera::layer
