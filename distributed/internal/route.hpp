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
#include "tessera/sparse/part.hpp"

namespace tessera::distributed::internal {

// Brings pattern and values of a matrix from the ranks that have them for Fwd to the ranks that
// have them in the transpose. All functions but forget_pattern() are collective. `own` is the
// caller's part of R (Grid::forward), and `transpose` its part of the transpose
// (Grid::transposed), a matrix in transposed blocks.
class TransposeRoute {
 public:
  TransposeRoute(Communicator& ranks, const Grid& grid, BlockShape block);

  // Returns the transpose with the value 0 everywhere. O(blocks) if ranks have whole rows, else the
  // blocks are sorted.
  sparse::Csr<float> pattern_of(const sparse::Csr<float>& own);

  // Returns the change of the transpose that belongs to a change of R. O(changes).
  sparse::PatternChange change_of(const sparse::PatternChange& own);

  // Is called when the pattern has changed.
  void forget_pattern() noexcept { in_.clear(); }

  // Returns the values of the transpose, valid until the next call. Allocates in the first one, and
  // after changes of the pattern.
  std::span<const float> values_of(const sparse::Csr<float>& own,
                                   const sparse::Csr<float>& transpose);

 private:
  // Blocks of R, in blocks.
  struct Region {
    Range rows, columns;
    bool has(sparse::BlockAt at) const {
      return rows.begin <= at.row && at.row < rows.end && columns.begin <= at.col &&
             at.col < columns.end;
    }
  };

  std::vector<sparse::BlockAt> moved(std::span<const sparse::BlockAt> own);
  static sparse::Part common_part(const sparse::Csr<float>& matrix, const Region& region,
                                  const Region& other);
  void find_parts(const sparse::Csr<float>& own, const sparse::Csr<float>& transpose);

  Communicator& ranks_;
  BlockShape block_;
  std::vector<Region> from_, to_;       // by rank
  std::vector<sparse::Part> out_, in_;  // of `own`, and of this rank's columns of R, by rank; in_
                                        // is empty before the values of a new pattern travel
  std::vector<std::int64_t> place_;     // positions in the transpose of the blocks of the columns
  std::vector<float> values_;
};

}  // namespace tessera::distributed::internal
