#pragma once

#include <string>
#include <string_view>

#include "tessera/io/read.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::io {

// Numbers that a reader returns. Float: they are floats, each the one that is nearest to the number
// in the file, and a finite number beyond the floats is Error{BadInput}.
enum class Precision { Double, Float };

// Options of readers, whose defaults are the rules of read.hpp and npz.hpp.
struct ReadOptions {
  // Sum: places that are given twice in .mtx and .npz files are added up, as SciPy does. A pattern
  // stays a pattern. A symmetric file that has both triangles counts every place twice. Refuse:
  // such a place is an error.
  sparse::Duplicates duplicates = sparse::Duplicates::Refuse;

  // Float is for callers that convert the values to float, which then changes none.
  Precision precision = Precision::Double;

  // False: entry_of_value stays empty. It takes 8 bytes for each entry of a pattern that is not in
  // order, more than half of the matrix; callers that need the places alone do without.
  bool keeps_order = true;
};

// Read as the functions of these names in read.hpp and npz.hpp do, by these options.
ReadMatrix read_matrix(const std::string& path, const ReadOptions& options);
ReadMatrix read_mtx(std::string_view text, std::string_view name, const ReadOptions& options);
sparse::Csr<double> read_npz(std::string_view bytes, std::string_view name,
                             sparse::Duplicates duplicates);

// Reads a file of weights as elements, with at least one row and one column. Throws Error{BadInput}
// if that fails for any reason, a limit on sizes included.
ReadMatrix read_weights(const std::string& path, const ReadOptions& options = {});

// Throws Error{BadInput} with the name of the file unless there are a row and a column.
void require_sizes(const std::string& path, std::int64_t rows, std::int64_t cols);

}  // namespace tessera::io
