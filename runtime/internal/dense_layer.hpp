#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "tessera/planner/dense_plan.hpp"
#include "tessera/runtime/internal/dense_pass.hpp"
#include "tessera/runtime/internal/fully_connected_state.hpp"

namespace tessera::runtime::internal {

// A layer whose plan multiplies all of R without buckets. It holds R with zeros where nothing is
// stored; gradients are gathered at the places of the pattern. Every pattern fits, so there is no
// misfit, and options of encoding change nothing. Invariants:
//   1. given_ is empty before the first set_weights; after it, it has a matrix for each group.
//   2. r_ has the matrices of given_, [groups * x][y] in the layer's type.
class DenseLayer final : public FullyConnected::State {
 public:
  DenseLayer(const Problem& problem, const planner::Plan& plan, const device::Machine& machine,
             device::ExchangeMode mode, Executor& executor);

  bool empty() const override { return given_.empty(); }
  const sparse::CheckedCsr<float>& given(std::int64_t group) const override;
  verify::Rounding rounding(Pass pass) const override;

  // All of R is sent for a new pattern.
  Bytes pattern_bytes() const override { return Bytes(std::int64_t(r_.size())); }

  // Nothing spills and nothing travels.
  partitioner::SpillStats spill() const override;
  partitioner::Travel travel() const override { return {}; }

 private:
  std::optional<partitioner::Misfit> encode(std::span<const sparse::CheckedCsr<float>> weights,
                                            const partitioner::EncodeOptions& options) override;
  std::optional<partitioner::Misfit> encode_update(const sparse::PatternChange& change,
                                                   std::int64_t group) override;
  void take_update(std::int64_t group) override;
  void put_values(std::span<const float> values, std::int64_t group) override;
  Dims padded(Pass) const override { return problem.size; }
  bool product(Pass pass, device::ByteRows in, device::ByteRows out, const PassOptions& options,
               device::Ledger& ledger) override;
  bool gradient(device::ByteRows q_grad, device::ByteRows s, std::span<float> gradients,
                const PassOptions& options, device::Ledger& ledger) override;

  // Writes the matrix of a group to r_.
  void refill(std::int64_t group);
  device::ByteRows r_rows(std::vector<std::byte>& storage) const;

  // Returns the operand of GradW that the program reads transposed, [groups * z][x].
  device::ByteRows transposed(device::ByteRows q_grad);

  planner::DensePlan plan_;
  std::array<std::optional<OwnPass<DensePass>>, 3> passes_;  // by Pass
  std::vector<sparse::CheckedCsr<float>> given_;
  sparse::CheckedCsr<float> next_;  // of encode_update()
  std::vector<std::byte> r_, r_grad_, turned_;
};

}  // namespace tessera::runtime::internal
