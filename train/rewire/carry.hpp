#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/sparse/change.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/train/optim/values.hpp"

namespace tessera::train {

// Returns the change of a rewire that dropped and grew these places, each list in row-major order
// without repetition. A place in both lists comes back and is in neither list of the change, so it
// keeps its value. O(places). Thread-safe.
sparse::PatternChange net_change(std::span<const sparse::BlockAt> dropped,
                                 std::span<const sparse::BlockAt> grown);

// Returns an optimiser's state of weights in the order after a change of their pattern
// (sparse::place_change), with 0 for new weights. O(values). Thread-safe.
ValueState<float> carried_state(const sparse::Csr<float>& before,
                                std::span<const sparse::PlacedBlock> change,
                                const ValueState<float>& state);

// The places of a matrix that were stored at any time.
class EverActive {
 public:
  EverActive() = default;

  // Starts with the places of this pattern.
  explicit EverActive(const sparse::Csr<float>& pattern);

  // Starts with saved bits (bits()), for a matrix of so many blocks. Throws Error{InvalidArgument}
  // for another number of bytes.
  EverActive(std::int64_t block_rows, std::int64_t block_cols, std::vector<std::uint8_t> bits);

  // Adds places. Allocates nothing.
  void add(std::span<const sparse::BlockAt> places) noexcept;

  // Returns the number of places that were ever stored, and the number of all.
  std::int64_t count() const { return count_; }
  std::int64_t places() const { return block_rows_ * block_cols_; }

  // Returns one bit for each place in row-major order, the lowest bit of a byte first.
  const std::vector<std::uint8_t>& bits() const { return bits_; }

  friend bool operator==(const EverActive&, const EverActive&) = default;

 private:
  std::int64_t block_rows_ = 0, block_cols_ = 0, count_ = 0;
  std::vector<std::uint8_t> bits_;
};

}  // namespace tessera::train
