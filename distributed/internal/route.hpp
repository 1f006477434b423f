#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/dims.hpp"
#include "tessera/distributed/communicator.hpp"
#include "tessera/distributed/internal/grid.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::distributed::internal {

// Brings pattern and values of a matrix from the ranks that have them for Fwd to the ranks that
// have them in the transpose. All functions but reserve() and set_pattern() are collective. `own`
// is the caller's part of R (Grid::forward), and the transpose is its part of that
// (Grid::transposed), a matrix in transposed blocks.
class TransposeRoute {
 public:
  TransposeRoute(Communicator& ranks, const Grid& grid, BlockShape block);

  // Returns the transpose. O(blocks) if ranks have whole rows, else the blocks are sorted.
  sparse::Csr<float> transpose_of(const sparse::Csr<float>& own);

  // Returns the change of the transpose that follows from a change of `own`. After both changes
  // set_pattern() is called.
  sparse::PatternChange change_of(const sparse::PatternChange& change);

  // Allocates what set_pattern() needs for a transpose of so many blocks. Not collective.
  void reserve(std::int64_t blocks);

  // Takes the pattern of the transpose. Not collective. Cannot fail after reserve(). O(blocks).
  void set_pattern(const sparse::Csr<float>& transpose);

  // Returns the values of the transpose, valid until the next call. Allocates in the first one.
  std::span<const float> values_of(const sparse::Csr<float>& own);

 private:
  // Blocks of R, in blocks.
  struct Region {
    Range rows, columns;
    bool has(std::int64_t row, std::int64_t col) const {
      return rows.begin <= row && row < rows.end && columns.begin <= col && col < columns.end;
    }
  };

  static std::size_t find(const std::vector<Region>& regions, std::size_t first, std::int64_t row,
                          std::int64_t col);
  std::vector<sparse::BlockAt> exchange(std::string_view what,
                                        std::span<const sparse::BlockAt> places);

  Communicator& ranks_;
  BlockShape block_;
  std::vector<Region> from_, to_;      // by rank
  std::vector<std::int32_t> order_;    // position in the transpose of each block, by row of R
  std::vector<std::int32_t> senders_;  // ranks of these blocks
  std::vector<std::int32_t> next_;     // scratch: the next position of each row of R
  std::vector<float> values_;
};

}  // namespace tessera::distributed::internal
