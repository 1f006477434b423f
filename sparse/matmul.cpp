#include "tessera/sparse/matmul.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::sparse {
namespace {

void check_operand_of_group(const MatMulProblem& problem, const Csr<float>& operand) {
  const MatrixShape shape = sparse_shape(problem);
  const std::int64_t rows = round_up(shape.rows, problem.block.rows);
  const std::int64_t cols = round_up(shape.cols, problem.block.cols);
  if (operand.rows == rows && operand.cols == cols && operand.block == problem.block) return;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("the sparse operand is {} x {} in blocks of {} x {}; this product needs "
                          "{} x {} in blocks of {} x {}",
                          operand.rows, operand.cols, operand.block.rows, operand.block.cols, rows,
                          cols, problem.block.rows, problem.block.cols));
}

}  // namespace

std::vector<Csr<float>> matmul_weights(const MatMulProblem& problem,
                                       std::span<const Csr<float>> operands) {
  if (std::ssize(operands) != problem.groups)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} sparse operands are given; this product has {} groups",
                            operands.size(), problem.groups));
  std::vector<Csr<float>> weights;
  for (const Csr<float>& operand : operands) {
    check_operand_of_group(problem, operand);
    weights.push_back(stores_transposed_weights(problem) ? transpose(operand) : operand);
  }
  return weights;
}

}  // namespace tessera::sparse
