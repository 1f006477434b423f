#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/data_type.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/movable_state.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/runtime/tile_options.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::runtime {

// Describes C[g][m][n] = op(A)[g][m][k] * op(B)[g][k][n] at a mask for each group, where both
// operands are dense and op is the matrix itself or its transpose. A transposed operand is stored
// with its sides swapped: A as [k][m], B as [n][k].
struct MaskProductProblem {
  std::int64_t groups = 1, m = 1, k = 1, n = 1;  // elements
  BlockShape block;                              // of the mask
  double density = 1.0;                          // stored elements of the mask / all, in [0, 1]
  DataType data_type = DataType::Half;
  DataType partials_type = DataType::Float;
  bool transpose_lhs = false, transpose_rhs = false;

  friend bool operator==(const MaskProductProblem&, const MaskProductProblem&) = default;
};

// Returns the layer whose GradW is the product: x is m, y is n and z is k.
Problem layer_of(const MaskProductProblem& problem);

// The product of two dense matrices at a block mask on a modelled machine, with a sparse result:
// what PopSparse calls a bsMatMul with a sub-block mask. It is the GradW of a layer, which reads A
// as [m][k] and B as [n][k]; an operand in the other order is transposed by a program of its own
// first, charged to Phase::TransposeOperand. If a mask has zeros inside its blocks (a triangle,
// sparse/block_mask.hpp), a program at the end sets these elements to 0 where they are stored,
// charged to Phase::Activate.
//
// Operands are strided views of the caller's memory, the matrices of all groups one below the
// other. T is the C++ type of the problem's data type. Throws Error{InvalidArgument} for another T
// or shape, for values that share memory with an operand, and for a call before the first set_mask.
// One thread at a time uses a product.
class MaskProduct {
 public:
  // Plans the layer with its Fwd, which gives the buckets their places, and GradW, in which buckets
  // travel so that results stay with them. The executor must outlive the product. Throws the errors
  // of planner::plan_or_throw and FullyConnected, and Error{InvalidArgument} for constraints that
  // ask for a dense plan or for travelling operands.
  MaskProduct(const MaskProductProblem& problem, const device::Machine& machine,
              device::ExchangeMode mode, Executor& executor, planner::Options options = {});
  ~MaskProduct();
  MaskProduct(MaskProduct&&) noexcept;

  // Takes a mask [m][n] in the problem's block for each group and encodes it. Its values say what
  // is kept: elements with 0 are stored, and are 0 in every result. Returns a misfit if one does
  // not fit the buckets. Throws as FullyConnected::set_weights.
  std::optional<partitioner::Misfit> set_mask(std::span<const sparse::Csr<float>> masks);
  std::optional<partitioner::Misfit> set_mask(const sparse::Csr<float>& mask);

  // Writes the product in the order of the masks' values, group after group, rounded to the data
  // type and widened. Returns its cost.
  template <class T>
  device::Ledger multiply(MatrixView<const T> a, MatrixView<const T> b, std::span<float> values) {
    return cost_of_whole(
        [&](device::Ledger& ledger) { return multiply<T>(a, b, values, {}, ledger); });
  }

  // Does the same with options. Returns false if options.stop ended the run. A self-check is that
  // of GradW, and compares transposed operands and zeros bit for bit. Throws Error{InvalidArgument}
  // for a fault and for figures of tiles, which the layer takes.
  template <class T>
  [[nodiscard]] bool multiply(MatrixView<const T> a, MatrixView<const T> b, std::span<float> values,
                              const PassOptions& options, device::Ledger& ledger);

  // Returns the number of values of all groups.
  std::int64_t values() const;

  // Returns the layer, for its buckets, programs and figures.
  const FullyConnected& layer() const;

 private:
  struct State;
  MovableState<State> state_;
};

}  // namespace tessera::runtime
