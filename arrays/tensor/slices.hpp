#pragma once

#include <vector>

#include "tessera/arrays/tensor/coo_tensor.hpp"
#include "tessera/arrays/tensor/sliced_csr.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::arrays {

// Between the tensors and matrices with views and the plain formats. All results are copies. T is
// float or double. What needs a matrix and gets a tensor that has not two dimensions is
// Error{InvalidArgument}; the two dimensions of a view are its rows and columns. n is what nnz()
// visits. Several threads may convert one settled tensor.

// Row-major over the shape, zero where nothing is stored. O(elements + n).
// Error{LimitExceeded} when the elements leave 64 bits.
template <class T>
std::vector<T> to_dense_values(const CooTensor<T>& tensor);
// The same of a matrix.
template <class T>
Matrix<T> to_dense(const CooTensor<T>& tensor);
template <class T>
Matrix<T> to_dense(const SlicedCsr<T>& matrix);
template <class T>
Matrix<T> to_dense(const SlicedCsc<T>& matrix);

// Element matrices, legal by check.hpp, stored zeros kept. O(n + rows + cols), and the sort of
// to_csr(Coo) when the tensor lies in another order.
template <class T>
sparse::Csr<T> to_csr(const CooTensor<T>& tensor);
template <class T>
sparse::Csc<T> to_csc(const CooTensor<T>& tensor);
template <class T>
sparse::Csr<T> to_csr(const SlicedCsr<T>& matrix);
template <class T>
sparse::Csc<T> to_csc(const SlicedCsc<T>& matrix);
// By a counting sort.
template <class T>
sparse::Csr<T> to_csr(const SlicedCsc<T>& matrix);

// From an element matrix (1 x 1 blocks, else Error{InvalidArgument}) that is legal, else
// Error{BadInput}.
template <class T>
CooTensor<T> to_tensor(const sparse::Csr<T>& matrix);
template <class T>
SlicedCsr<T> to_sliced(const sparse::Csr<T>& matrix);
template <class T>
SlicedCsc<T> to_sliced(const sparse::Csc<T>& matrix);

}  // namespace tessera::arrays
