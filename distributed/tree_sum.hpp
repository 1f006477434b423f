#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/even_part.hpp"
#include "tessera/distributed/communicator.hpp"

namespace tessera::distributed {

// The most leaves that a sum has.
constexpr std::int64_t kMostLeaves = 4096;

// Returns the numbers of the calling rank's leaves.
inline Range own_leaves(const Communicator& ranks, std::int64_t leaves) {
  return even_part(leaves, ranks.size(), ranks.rank());
}

// The lists that a sum needs beside its result, which are kept for the next sum as long as this
// lives: up to 2 * log2(leaves), each as long as the longest sum. One thread at a time may use it.
class SumMemory {
 public:
  // Returns a list of so many numbers, of any values, which belongs to the caller until
  // take_back().
  std::span<float> take(std::size_t numbers);
  void take_back() { taken_ = 0; }

 private:
  std::vector<std::vector<float>> lists_;
  std::size_t taken_ = 0;
};

// Adds up lists of floats that are spread over ranks, with the same bits for every number of ranks:
// calls write_leaf(leaf, values) for each of own_leaves(), in ascending order, and writes the sum
// of all leaves to `sum`, the same on every rank. The lists are the leaves of a binary tree whose
// shape depends on their number alone: leaves 0 and 1 are added, leaves 2 and 3, then the two sums,
// and so on. Each rank adds up the largest whole subtrees of its leaves. Then each rank receives
// one part of all subtrees, adds them up in the order of the tree, and tells the others: 2 * (P -
// 1) / P lists travel to each rank if the leaves divide by the P ranks, and up to 2 * log2(leaves)
// times as much of the first half otherwise. Gradients of a batch that is split over ranks are
// added so (cut.hpp). Collective; all ranks give sums of the same length. Takes at most 2 *
// log2(leaves) lists of `memory`. Throws Error{InvalidArgument} unless there are 1 to kMostLeaves
// leaves.
using WriteLeaf = std::function<void(std::int64_t leaf, std::span<float> values)>;
void tree_sum(Communicator& ranks, std::int64_t leaves, std::span<float> sum,
              const WriteLeaf& write_leaf, SumMemory& memory);

}  // namespace tessera::distributed
