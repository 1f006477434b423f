#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/matrix.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/planner/dense_plan.hpp"
#include "tessera/runtime/dense_pass.hpp"
#include "tessera/runtime/internal/layer_check.hpp"
#include "tessera/runtime/internal/padded.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::runtime::internal {

// A layer whose plan multiplies all of R without buckets. It holds R with zeros where nothing is
// stored; gradients are gathered at the places of the pattern. FullyConnected has one of these or a
// SparseLayer; functions of the same name do the same. Invariants:
//   1. given_ is empty before the first set_weights; after it, it has a matrix for each group.
//   2. r_ has the matrices of given_, [groups * x][y] in the layer's type.
class DenseLayer {
 public:
  // The constructor of FullyConnected, for a valid problem and a plan of it.
  DenseLayer(const Problem& problem, const planner::DensePlan& plan, const device::Machine& machine,
             device::ExchangeMode mode, Executor& executor);

  // The functions of FullyConnected with these names. Every pattern fits, so there is no misfit,
  // and options of encoding change nothing.
  std::optional<partitioner::Misfit> set_weights(std::span<const sparse::CheckedCsr<float>> weights,
                                                 const partitioner::EncodeOptions& options);
  std::optional<partitioner::Misfit> encode_update(const sparse::PatternChange& change,
                                                   std::int64_t group);
  void take_update(std::int64_t group);
  void set_values(std::span<const float> values, std::int64_t group);

  bool empty() const { return given_.empty(); }
  bool has(Pass pass) const { return passes_[std::size_t(pass)].has_value(); }
  const sparse::CheckedCsr<float>& given(std::int64_t group) const;

  // Runs Fwd or GradA.
  template <class T>
  bool product(Pass pass, MatrixView<const T> in, MatrixView<T> out, const PassOptions& options,
               device::Ledger& ledger);

  // Runs GradW.
  template <class T>
  bool gradient(MatrixView<const T> q_grad, MatrixView<const T> s, std::span<float> gradients,
                const PassOptions& options, device::Ledger& ledger);

  const Program& program(Pass pass) const { return dense_pass(pass).program(); }
  device::MemoryUse memory(Pass pass) const { return dense_pass(pass).memory(); }
  Bytes high_water() const;

  // All of R is sent for a new pattern; an update sends the blocks that it removes and adds.
  Bytes pattern_bytes() const { return Bytes(std::int64_t(r_.size())); }
  Bytes pattern_change_bytes() const { return change_bytes_; }

  // Nothing spills and nothing travels.
  partitioner::SpillStats spill() const;
  partitioner::Travel travel() const { return {}; }

 private:
  const DensePass& dense_pass(Pass pass) const;
  void check_group(std::int64_t group) const;

  // Writes the matrix of a group to r_.
  void refill(std::int64_t group);
  device::ByteRows r_rows(std::vector<std::byte>& storage) const;

  // Returns an operand, whose rows in each group are this side of the problem, with contiguous
  // rows.
  template <class T>
  Padded<T> operand(MatrixView<T> view, std::int64_t Dims::* side);
  // Returns the operand of GradW that the program reads transposed, [groups * z][x].
  template <class T>
  device::ByteRows transposed(MatrixView<const T> q_grad);
  verify::Rounding rounding(Pass pass) const;
  CheckedWeights to_check();

  Problem problem_;
  planner::DensePlan plan_;
  Executor& executor_;
  std::array<std::optional<DensePass>, 3> passes_;  // by Pass
  std::vector<sparse::CheckedCsr<float>> given_;
  sparse::CheckedCsr<float> next_;  // of encode_update()
  verify::KeptSums sums_;           // of given_
  std::vector<std::byte> r_, r_grad_;
  Bytes change_bytes_, next_change_bytes_;
  std::array<std::vector<std::byte>, 2> copies_;  // operands with contiguous rows, by side
};

}  // namespace tessera::runtime::internal
