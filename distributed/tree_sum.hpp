#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/distributed/communicator.hpp"

namespace tessera::distributed {

// Adds up lists of floats that are spread over ranks, with the same bits for every number of ranks.
// The lists are the leaves of a binary tree whose shape depends on their number alone: leaves 0 and
// 1 are added, leaves 2 and 3, then the two sums, and so on. Each rank has a run of leaves and adds
// up the largest whole subtrees in it. Then each rank receives one part of all subtrees, adds them
// up in the order of the tree, and tells the others: 2 * (P - 1) / P lists travel to each rank if
// the leaves divide by the P ranks, and up to 2 * log2(leaves) times as much of the first half
// otherwise. Gradients of a batch that is split over ranks are added so (cut.hpp).
class TreeSum {
 public:
  static constexpr std::int64_t kMostLeaves = 4096;

  // Throws Error{InvalidArgument} unless there are 1 to kMostLeaves leaves and `length` is at least
  // 0. The communicator must outlive the object.
  TreeSum(Communicator& ranks, std::int64_t leaves, std::int64_t length);
  TreeSum(const TreeSum&) = delete;  // subtrees refer to the memory of their object
  TreeSum& operator=(const TreeSum&) = delete;

  // Returns the numbers of the calling rank's leaves.
  Range leaves() const { return own_; }

  // Adds the next leaf of this rank. Throws Error{InvalidArgument} for a list of another length and
  // beyond the last leaf. O(length); keeps at most 2 * log2(leaves) lists.
  void add(std::span<const float> leaf);

  // Writes the sum of all leaves, the same on every rank. Collective. The next leaf is then the
  // first of a new sum. Throws Error{InvalidArgument} for another length or if leaves are missing.
  void finish(std::span<float> sum);

 private:
  // The sum of the leaves [first, first + size) of a tree, or some numbers of it; size is a power
  // of two that divides first.
  struct Subtree {
    std::int64_t first = 0, size = 1;
    std::span<float> values;
  };

  static void add_up(std::span<const Subtree> parts, std::span<float> sum);
  std::vector<Subtree> subtrees_of(int rank) const;
  void check_length(std::size_t size) const;

  Communicator& ranks_;
  std::int64_t leaves_, length_;
  Range own_;
  std::int64_t next_;              // leaf of this rank
  std::vector<Subtree> subtrees_;  // of this rank's leaves so far
  // Memory of leaves, and what of it is free: fresh memory has to be mapped page by page, which
  // takes longer than a sum.
  std::vector<std::vector<float>> memory_;
  std::vector<std::span<float>> spare_;
};

}  // namespace tessera::distributed
