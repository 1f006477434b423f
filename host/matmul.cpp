#include "tessera/host/matmul.hpp"

#include <chrono>
#include <vector>

#include "tessera/sparse/matmul.hpp"

namespace tessera::host {
namespace {

Problem layer_of_checked(const MatMulProblem& problem) {
  check_matmul(problem);
  return layer_of(problem);
}

}  // namespace

MatMul::MatMul(const MatMulProblem& problem, const HostCpu& cpu, Executor& executor,
               const HostOptions& options)
    : problem_(problem), layer_(layer_of_checked(problem), cpu, executor, options) {}

void MatMul::set_sparse(std::span<const sparse::Csr<float>> operands) {
  const std::vector<sparse::Csr<float>> weights = sparse::matmul_weights(problem_, operands);
  layer_.set_weights(sparse::checked(weights));
}

void MatMul::set_sparse(const sparse::Csr<float>& operand) { set_sparse(std::span(&operand, 1)); }

template <class T>
HostTimes MatMul::multiply(MatrixView<const T> dense, MatrixView<T> result) {
  check_operands<T>(problem_, dense, result);
  const auto begin = std::chrono::steady_clock::now();
  const ByLayer<const T> in(dense, is_dense_by_column(problem_), problem_.groups);
  ByLayer<T> out(result, is_result_by_column(problem_), problem_.groups);
  HostTimes times = layer_.forward<T>(in.view(), out.view());
  out.write_back();
  times.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return times;
}

template HostTimes MatMul::multiply(MatrixView<const float>, MatrixView<float>);
template HostTimes MatMul::multiply(MatrixView<const Half>, MatrixView<Half>);
template HostTimes MatMul::multiply(MatrixView<const BFloat16>, MatrixView<BFloat16>);

}  // namespace tessera::host
