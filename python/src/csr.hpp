#pragma once

#include <pybind11/numpy.h>

#include <cstdint>
#include <vector>

#include "tessera/base/block_shape.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::python {

// Returns the matrix [rows][cols] of SciPy's arrays: indptr and indices are int32 or int64, data is
// float32, [nnz] or, for blocks, [blocks][block rows][block columns]; all are contiguous. Columns
// in any order are sorted and places that are given twice are added up, as SciPy does. Throws
// BadInput that names the array and the position for everything else that breaks the rules of the
// format. Releases the interpreter lock while it checks and sorts.
sparse::Csr<float> csr_from_arrays(const pybind11::array& indptr, const pybind11::array& indices,
                                   const pybind11::array& data, std::int64_t rows,
                                   std::int64_t cols);

// Returns (indptr, indices, data) as new arrays. The indices are int32, or int64 where there are
// 2^31 blocks or more.
pybind11::tuple arrays_from_csr(const sparse::Csr<float>& matrix);

// Returns the places (rows[i], cols[i]) in block coordinates. `name` is that of the argument.
// Throws InvalidArgument if the lists differ in length.
std::vector<sparse::BlockAt> places(const pybind11::array& rows, const pybind11::array& cols,
                                    const char* name);

}  // namespace tessera::python
