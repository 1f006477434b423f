#include "tessera/base/matmul.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/half.hpp"
#include "tessera/base/overlap.hpp"

namespace tessera {
namespace {

void check_side(const char* name, std::int64_t value) {
  if (value >= 1 && value <= kLargestSize) return;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("{} is {}; it must be in 1..{}", name, value, kLargestSize));
}

bool is_left(const MatMulProblem& p) { return p.side == SparseSide::Left; }

MatrixShape stored(MatrixShape shape, bool transposed) {
  if (transposed) std::swap(shape.rows, shape.cols);
  return shape;
}

// Returns "transpose(A)[8][16]" for an operand that is used as [8][16].
std::string operand_text(const char* name, MatrixShape used, bool transposed) {
  return fmt::format("{}[{}][{}]", transposed ? fmt::format("transpose({})", name) : name,
                     used.rows, used.cols);
}

template <class T>
void check_shape(const char* name, MatrixView<T> matrix, MatrixShape shape,
                 const MatMulProblem& problem) {
  if (matrix.rows == problem.groups * shape.rows && matrix.cols == shape.cols) return;
  throw_invalid(fmt::format("{} is {} x {}; {} needs {} x {}", name, matrix.rows, matrix.cols,
                            to_string(problem), problem.groups * shape.rows, shape.cols));
}

}  // namespace

std::string_view to_string(SparseSide side) {
  switch (side) {
    case SparseSide::Left:
      return "left";
    case SparseSide::Right:
      return "right";
  }
  assertion_failed("every side has a name", __FILE__, __LINE__);
}

void check_matmul(const MatMulProblem& p) {
  check_side("m", p.m);
  check_side("k", p.k);
  check_side("n", p.n);
  check_problem(layer_of(p));
}

MatMulProblem with_non_zeros(MatMulProblem p, std::int64_t non_zeros) {
  const double all = double(sparse_shape(p).rows) * double(sparse_shape(p).cols);
  if (non_zeros < 0 || double(non_zeros) > all)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("the number of non-zeros is {}; a sparse operand of {} x {} has 0..{}",
                            non_zeros, sparse_shape(p).rows, sparse_shape(p).cols, all));
  p.density = double(non_zeros) / all;
  return p;
}

Problem layer_of(const MatMulProblem& p) {
  const Dims size = is_left(p) ? Dims{p.groups, p.m, p.k, p.n} : Dims{p.groups, p.n, p.k, p.m};
  return {.size = size,
          .block = stores_transposed_weights(p) ? p.block.transposed() : p.block,
          .density = p.density,
          .data_type = p.data_type,
          .partials_type = p.partials_type};
}

MatrixShape sparse_shape(const MatMulProblem& p) {
  return is_left(p) ? stored({p.m, p.k}, p.transpose_lhs) : stored({p.k, p.n}, p.transpose_rhs);
}

MatrixShape dense_shape(const MatMulProblem& p) {
  return is_left(p) ? stored({p.k, p.n}, p.transpose_rhs) : stored({p.m, p.k}, p.transpose_lhs);
}

MatrixShape result_shape(const MatMulProblem& p) { return {p.m, p.n}; }

bool stores_transposed_weights(const MatMulProblem& p) {
  return is_left(p) ? p.transpose_lhs : !p.transpose_rhs;
}

bool moves_dense_operand(const MatMulProblem& p) {
  return is_left(p) ? p.transpose_rhs : p.transpose_lhs;
}

bool is_dense_by_column(const MatMulProblem& p) {
  return is_left(p) ? p.transpose_rhs : !p.transpose_lhs;
}

bool is_result_by_column(const MatMulProblem& p) { return !is_left(p); }

std::string to_string(const MatMulProblem& p) {
  return fmt::format("{}C[{}][{}] = {} * {}, {} sparse",
                     p.groups > 1 ? fmt::format("g{} ", p.groups) : "", p.m, p.n,
                     operand_text("A", {p.m, p.k}, p.transpose_lhs),
                     operand_text("B", {p.k, p.n}, p.transpose_rhs), is_left(p) ? "A" : "B");
}

template <class T>
void check_operands(const MatMulProblem& problem, MatrixView<const T> dense, MatrixView<T> result) {
  if (data_type_of<T>() != problem.data_type)
    throw_invalid(fmt::format("multiply: operands are {} but the product is {}",
                              to_string(data_type_of<T>()), to_string(problem.data_type)));
  check_shape("the dense operand", dense, dense_shape(problem), problem);
  check_shape("the result", result, result_shape(problem), problem);
  check_memory("multiply", footprint("result", result),
               std::array{footprint("dense operand", dense)});
}

template <class T>
void transpose_groups(MatrixView<const T> from, MatrixView<T> to, std::int64_t groups) {
  const std::int64_t rows = from.rows / groups;
  if (groups < 1 || rows * groups != from.rows || to.rows != groups * from.cols || to.cols != rows)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("the transposes of {} groups of a matrix {} x {} are not {} x {}",
                            groups, from.rows, from.cols, to.rows, to.cols));
  for (std::int64_t g = 0; g < groups; ++g)
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < from.cols; ++c) to(g * from.cols + c, r) = from(g * rows + r, c);
}

template <class T>
ByLayer<T>::ByLayer(MatrixView<T> given, bool by_column, std::int64_t groups)
    : given_(given), view_(by_column ? given.transposed() : given), groups_(groups) {
  if (!by_column || groups == 1) return;
  using Plain = std::remove_const_t<T>;
  copy_ = Matrix<Plain>(groups * given.cols, given.rows / groups);
  if constexpr (std::is_const_v<T>) transpose_groups<Plain>(given, copy_.view(), groups);
  view_ = copy_.view();
}

template <class T>
void ByLayer<T>::write_back() {
  if constexpr (!std::is_const_v<T>) {
    if (copy_.rows() > 0) transpose_groups<T>(std::as_const(copy_).view(), given_, groups_);
  }
}

#define TESSERA_MATMUL(T)                                                           \
  template void transpose_groups(MatrixView<const T>, MatrixView<T>, std::int64_t); \
  template class ByLayer<T>;                                                        \
  template class ByLayer<const T>;
TESSERA_MATMUL(float)
TESSERA_MATMUL(Half)
TESSERA_MATMUL(BFloat16)
TESSERA_MATMUL(double)
#undef TESSERA_MATMUL

template void check_operands(const MatMulProblem&, MatrixView<const float>, MatrixView<float>);
template void check_operands(const MatMulProblem&, MatrixView<const Half>, MatrixView<Half>);
template void check_operands(const MatMulProblem&, MatrixView<const BFloat16>,
                             MatrixView<BFloat16>);

}  // namespace tessera
