#pragma once

#include <cstdint>
#include <vector>

#include "tessera/distributed/communicator.hpp"
#include "tessera/distributed/row_cut.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::distributed::internal {

// Messages by which each rank, beside its rows of R, gets the transpose of its columns.
// The functions are collective. `rows` are the rows of the calling rank, `inputs` is the cut of the
// columns, in elements.

// Returns the number of blocks of each block column of R, summed over the ranks.
std::vector<std::int64_t> column_counts(Communicator& ranks, const sparse::Csr<float>& rows);

// Returns the transpose of this rank's columns: [columns of the rank][all rows], blocks transposed.
sparse::Csr<float> exchange_columns(Communicator& ranks, const RowCut& inputs,
                                    const sparse::Csr<float>& rows);

// Returns the position in `transpose` of each of its blocks in the order in which exchange_values
// receives them, which is by row of R, then by column. O(blocks).
std::vector<std::int32_t> received_order(const sparse::Csr<float>& transpose);

// Sends the values of `rows` to the ranks with their columns, and writes those that come into
// `values`, which has the order of the transpose; `order` is its received_order.
void exchange_values(Communicator& ranks, const RowCut& inputs, const sparse::Csr<float>& rows,
                     const std::vector<std::int32_t>& order, std::vector<float>& values);

// Sends the places of a change of `rows` to the ranks with their columns, and returns the change of
// this rank's transpose. `first_block_row` is that of this rank in R.
sparse::PatternChange exchange_change(Communicator& ranks, const RowCut& inputs, BlockShape block,
                                      std::int64_t first_block_row,
                                      const sparse::PatternChange& change);

}  // namespace tessera::distributed::internal
