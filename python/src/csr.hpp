#pragma once

#include <pybind11/numpy.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/block_shape.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::python {

// A matrix as the package hands it over: the tuple Matrix of tessera/_weights.py. Its arrays are
// those of the caller's library and not checked yet. indptr and indices are of one type, int32 or
// int64, data is float32, and all are contiguous.
struct MatrixArrays {
  std::string format;      // "csr", "bsr", "csc" or "coo"
  pybind11::array first;   // indptr; the rows of coo
  pybind11::array second;  // indices; the columns of coo
  pybind11::array data;    // [nnz], or [blocks][block rows][block columns]
  std::int64_t rows = 0, cols = 0;
  BlockShape block;

  // Throws InvalidArgument if data has other dimensions.
  explicit MatrixArrays(const pybind11::tuple& matrix);
};

// Returns the tuple `type`, which is Matrix of tessera/_weights.py, of arrays that need no
// conversion: of NumPy's own class, contiguous, aligned, the indices of one type and the values
// float32. Returns None for all others, and for a shape that is no pair of sides. Their contents
// are not read.
pybind11::object ready_arrays(const pybind11::type& type, pybind11::handle format,
                              pybind11::handle first, pybind11::handle second,
                              pybind11::handle data, pybind11::handle shape);

// Does the same for a matrix of SciPy in compressed rows or columns, and returns None for objects
// of other libraries. It reads the fields that SciPy's own products read, in a fifth of the time of
// the same code in Python, which would take as long as a product of few values.
pybind11::object ready_matrix(const pybind11::type& type, pybind11::handle matrix);

// Returns the matrix in compressed rows. Columns in any order are sorted and places that are given
// twice are added up, as SciPy does. Throws BadInput, in the words of the arrays, for everything
// else that breaks the rules of the format, before an index is followed. Releases the interpreter
// lock while it checks and sorts.
sparse::Csr<float> csr_from_arrays(const MatrixArrays& matrix);

// Returns (indptr, indices, data) as new arrays. The indices are int32, or int64 where there are
// 2^31 blocks or more.
pybind11::tuple arrays_from_csr(const sparse::Csr<float>& matrix);

// Returns the places (rows[i], cols[i]) in block coordinates. `name` is that of the argument.
// Throws InvalidArgument if the lists differ in length.
std::vector<sparse::BlockAt> places(const pybind11::array& rows, const pybind11::array& cols,
                                    const char* name);

// Adds the two functions that find arrays without conversion to the module.
void add_csr(pybind11::module_& module);

}  // namespace tessera::python
