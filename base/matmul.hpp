#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/data_type.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/problem.hpp"

namespace tessera {

// The operand of a product that is sparse.
enum class SparseSide { Left, Right };

// Returns "left" or "right"; the text is valid as long as the program.
std::string_view to_string(SparseSide side);

// The rows and columns of one group's matrix, as the caller stores it.
struct MatrixShape {
  std::int64_t rows = 0, cols = 0;

  friend bool operator==(const MatrixShape&, const MatrixShape&) = default;
};

// Describes a product C[g][m][n] = op(A)[g][m][k] * op(B)[g][k][n] with one sparse operand, where
// op is the matrix itself or its transpose. A transposed operand is stored with its sides swapped:
// A as [k][m], B as [n][k]. The matrices of all groups are stored one below the other, and each
// group has its own pattern.
//
// A product is the Fwd of a layer Q[g][x][z] = R[g][x][y] * S[g][y][z] (layer_of): y is k, x is the
// outer side of the sparse operand and z that of the dense one. R is op(A), or the transpose of
// op(B). A sparse operand costs the same transposed or not, because its layer is encoded for R.
// A dense operand is on the machine in the order in which passes read it, unless it is transposed.
struct MatMulProblem {
  std::int64_t groups = 1, m = 1, k = 1, n = 1;  // elements
  SparseSide side = SparseSide::Left;
  BlockShape block;      // of the sparse operand as it is stored
  double density = 1.0;  // non-zeros / all of the sparse operand, in [0, 1]
  DataType data_type = DataType::Half;
  DataType partials_type = DataType::Float;
  bool transpose_lhs = false, transpose_rhs = false;

  friend bool operator==(const MatMulProblem&, const MatMulProblem&) = default;
};

// Throws Error{InvalidArgument}, which names the field, its value and the legal range.
void check_matmul(const MatMulProblem& problem);

// Returns the product with the density of this number of non-zero elements in each group. Throws
// Error{InvalidArgument} if the number is negative or larger than the sparse operand.
MatMulProblem with_non_zeros(MatMulProblem problem, std::int64_t non_zeros);

// Returns the layer whose Fwd is the product.
Problem layer_of(const MatMulProblem& problem);

// Return the shapes of a group's matrices as the caller stores them.
MatrixShape sparse_shape(const MatMulProblem& problem);
MatrixShape dense_shape(const MatMulProblem& problem);
MatrixShape result_shape(const MatMulProblem& problem);

// Returns true if R is the transpose of the sparse operand as it is stored.
bool stores_transposed_weights(const MatMulProblem& problem);

// Returns true if the dense operand is transposed, so that a machine must move it.
bool moves_dense_operand(const MatMulProblem& problem);

// Returns true if rows of the dense operand, or of the result, are columns of the layer's S or Q.
bool is_dense_by_column(const MatMulProblem& problem);
bool is_result_by_column(const MatMulProblem& problem);

// Throws Error{InvalidArgument}, which names the operand, for another type or shape than those of
// the product, and for a result that shares memory with the dense operand.
template <class T>
void check_operands(const MatMulProblem& problem, MatrixView<const T> dense, MatrixView<T> result);

// Returns the product as text: "g2 C[8][4] = transpose(A)[8][16] * B[16][4], A sparse".
std::string to_string(const MatMulProblem& problem);

// Writes to [groups * cols][rows] the transpose of every group of from [groups * rows][cols].
// Throws Error{InvalidArgument} if the rows are not a multiple of the groups, or the shapes differ.
template <class T>
void transpose_groups(MatrixView<const T> from, MatrixView<T> to, std::int64_t groups);

// A matrix of all groups in the order of a layer. It is a view of the caller's matrix if that has
// the order, or if there is one group, whose transpose is a view too; else a copy.
template <class T>
class ByLayer {
 public:
  // `by_column` is true if the matrix of a group is the transpose of what the layer has.
  ByLayer(MatrixView<T> given, bool by_column, std::int64_t groups);

  MatrixView<T> view() const { return view_; }

  // Copies the contents of the copy, if there is one, to the caller's matrix.
  void write_back();

 private:
  MatrixView<T> given_, view_;
  std::int64_t groups_;
  Matrix<std::remove_const_t<T>> copy_;
};

}  // namespace tessera
