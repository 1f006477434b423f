#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tessera/sparse/convert.hpp"

namespace tessera::io {

// PatternOptions say how a pattern is read.
struct PatternOptions {
  // Sum: a place that is given twice is one place. Refuse: it is an error.
  sparse::Duplicates duplicates = sparse::Duplicates::Refuse;

  // The most memory that the conversion takes, in bytes, 64 MiB or more. A file whose columns do
  // not fit in it is read once more for each range of rows that does.
  std::int64_t memory = std::int64_t{512} << 20;
};

// The pattern of a Matrix Market file that may be larger than the memory, for its conversion to
// .smtx. Entries may be in any order; the mirror images of a symmetric file are added. A file that
// is row by row is read at most twice. One thread may use an object at a time.
class MtxPattern {
 public:
  // Reads the start of the file. Throws the errors of read_matrix for it, and
  // Error{InvalidArgument} if options.memory is below its least, or if the rows alone, of 32 bytes
  // each, do not fit in it.
  explicit MtxPattern(const std::string& path, const PatternOptions& options = {});
  ~MtxPattern();

  std::int64_t rows() const;
  std::int64_t cols() const;
  bool has_values() const;  // in the file

  // Writes the text that write_smtx returns for the matrix, as a whole or not at all, and returns
  // the number of its places. Throws the errors of read_matrix and of write_file, and
  // Error{InvalidArgument} if a row does not fit in options.memory.
  std::int64_t write_smtx(const std::string& path);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::io
