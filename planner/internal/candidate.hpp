#pragma once

#include <cstdint>
#include <vector>

#include "tessera/base/problem.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/options.hpp"
#include "tessera/planner/plan.hpp"

namespace tessera::planner::internal {

// A combination of methods, blocks and the data that travel in GradW. The partition is still open.
struct Candidate {
  Method fwd = Method::ElementFwd;
  Method grad_a = Method::ElementTranspose;
  Method grad_w = Method::ElementGradW;
  BlockShape block;  // of the tiles
  Dims grain;
  bool exchange_buckets = false;
  bool dense = false;  // all blocks of R are kept, whatever the pattern

  bool shared_buckets() const { return grad_a != Method::ElementGradA; }
};

// Returns the block that the tiles work with. A square block becomes the largest of 16 x 16 (not
// for float), 8 x 8 and 4 x 4 that divides it; any other block is kept.
BlockShape block_to_use(BlockShape block, DataType type);

// Returns the block with which the kernels multiply dense matrices fastest.
BlockShape dense_block(DataType type);

// Returns all candidates in the order in which they are tried, the sparse ones first. Of candidates
// with equal costs, the planner takes the first.
std::vector<Candidate> candidates(const Problem& problem, const device::Machine& machine,
                                  const Options& options);

}  // namespace tessera::planner::internal
