#pragma once

#include <cstdint>
#include <vector>

#include "tessera/base/problem.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/options.hpp"
#include "tessera/planner/plan.hpp"

namespace tessera::planner::internal {

// One choice of methods and of what travels in GradW; the partition is still open.
struct Candidate {
  Method fwd = Method::ElementFwd;
  Method grad_a = Method::ElementTranspose;
  Method grad_w = Method::ElementGradW;
  BlockShape block;  // the tiles' blocks
  Dims grain;
  bool exchange_buckets = false;
  bool dense = false;  // all blocks of R, whatever the pattern

  bool shared_buckets() const { return grad_a != Method::ElementGradA; }
};

// The block the tiles work with: the largest of 16 (half only), 8 and 4 square that divides a
// square block; any other block is kept.
BlockShape block_to_use(BlockShape block, DataType type);

// Blocks with which the kernels multiply dense matrices fastest.
BlockShape dense_block(DataType type);

// All candidates in the order they are tried; equal costs go to the first. Sparse methods first.
std::vector<Candidate> candidates(const Problem& problem, const device::Machine& machine,
                                  const Options& options);

}  // namespace tessera::planner::internal
