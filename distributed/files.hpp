#pragma once

#include <cstdint>
#include <string>

#include "tessera/distributed/communicator.hpp"
#include "tessera/distributed/cut.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::distributed {

// A rank's rows of a file of weights, as elements.
template <class T>
struct FileRows {
  RowCut outputs;                // of all ranks
  std::int64_t cols = 0;         // of the file
  bool has_values = false;       // false: a pattern, whose values are all 1
  std::int64_t first_entry = 0;  // entries of the file before those of this rank
  sparse::Csr<T> rows;           // of this rank
};

// Reads this rank's rows of an .smtx, .mtx or .npz file (io/row_file.hpp). The first rank reads
// through the file once to find where rows are and tells the others; then each rank reads the bytes
// of its own rows alone. The cut has about as many entries for each rank, and is one of whole
// blocks of so many rows: RankLayer::set_rows takes sparse::in_whole_blocks of the result. T is
// float or double. Collective. Throws the errors of io::index_rows and io::read_rows; io::NotByRows
// is thrown on every rank, so that all can read the whole file instead; Error{InvalidArgument} on
// every rank if the files of the ranks differ in length or at their ends.
template <class T = float>
FileRows<T> read_own_rows(Communicator& ranks, const std::string& path,
                          std::int64_t block_rows = 1);

}  // namespace tessera::distributed
