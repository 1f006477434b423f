#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tessera/base/executor.hpp"
#include "tessera/base/matmul.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/movable_state.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/planner/matmul.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/runtime/tile_options.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::runtime {

// The product of a sparse and a dense matrix on a modelled machine (MatMulProblem). It is planned
// and built once and then takes any number of patterns. The product is the Fwd of a layer, which
// layer() returns; if the dense operand is transposed, a program of its own puts it in the order of
// that pass first. Its steps are charged to Phase::TransposeOperand, and the buckets of the layer
// keep their memory during it.
//
// Operands are strided views of the caller's memory, the matrices of all groups one below the
// other: the dense operand has [groups * dense_shape] elements, the result [groups * result_shape].
// T is the C++ type of the problem's data type. Throws Error{InvalidArgument} for another T, for an
// operand of another shape, for a result that shares memory with the operand, and for a call before
// the first set_sparse. One thread at a time may use a product.
//
// Example:
//   const auto plan = planner::matmul_plan(
//       problem, planner::plan_or_throw(layer_of(problem), machine), machine);
//   runtime::MatMul product(plan, machine, device::ExchangeMode::Share, *executor);
//   product.set_sparse(a);
//   const device::Ledger cost = product.multiply<float>(b.view(), c.view());
class MatMul {
 public:
  // Builds the programs. The executor must outlive the product. Throws Error{LimitExceeded} if the
  // memory of a tile cannot hold one of them.
  MatMul(const planner::MatMulPlan& plan, const device::Machine& machine, device::ExchangeMode mode,
         Executor& executor);
  ~MatMul();
  MatMul(MatMul&&) noexcept;

  // Takes the sparse operand of each group as it is stored, in the problem's block (rows and
  // columns in whole blocks), and encodes it. Returns a misfit if one does not fit the buckets; the
  // product then has the operand that it had before. Throws as FullyConnected::set_weights.
  std::optional<partitioner::Misfit> set_sparse(std::span<const sparse::Csr<float>> operands,
                                                const partitioner::EncodeOptions& options = {});

  // Does the same for a product of one group.
  std::optional<partitioner::Misfit> set_sparse(const sparse::Csr<float>& operand,
                                                const partitioner::EncodeOptions& options = {});

  // Writes the product. Returns its cost.
  template <class T>
  device::Ledger multiply(MatrixView<const T> dense, MatrixView<T> result) {
    return cost_of_whole(
        [&](device::Ledger& ledger) { return multiply<T>(dense, result, {}, ledger); });
  }

  // Does the same with options. Returns false if options.stop ended the run; the result is then
  // undefined. With a self-check, a transposed operand is compared with its source, bit for bit.
  template <class T>
  [[nodiscard]] bool multiply(MatrixView<const T> dense, MatrixView<T> result,
                              const PassOptions& options, device::Ledger& ledger);

  const planner::MatMulPlan& plan() const;

  // Returns the layer, for its buckets, programs and figures. Weights that are set there must be R.
  FullyConnected& layer();
  const FullyConnected& layer() const;

  // Returns the most memory that any tile needs in any program.
  Bytes high_water() const;

 private:
  struct State;
  MovableState<State> state_;
};

}  // namespace tessera::runtime
