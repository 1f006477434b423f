#pragma once

#include "tessera/partitioner/internal/holdings.hpp"
#include "tessera/partitioner/internal/transport.hpp"

namespace tessera::partitioner::internal {

// Room has three kinds (words, blocks, GradA words) and every record pays a header, so room is not
// a number of blocks. Two models say it in blocks all the same; pieces must be whole at home.

// Never too small: what is impossible in it is impossible. A bucket holds what it could hold of one
// record of rows as long as a cell is wide; of its own cell a place holds what fits when every row
// is whole and the longest rows stay. GradA words are not counted.
Transport optimistic_model(const Holdings& holdings);

// What is likely to work: free room less one record's header, and rows of average length.
// Where only blocks are short it equals the optimistic one. Neither too large nor too small for
// certain, so a placement is made with the real room, and says where the model promised too much.
Transport likely_model(const Holdings& holdings, const Transport& optimistic);

}  // namespace tessera::partitioner::internal
