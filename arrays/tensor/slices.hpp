#pragma once

#include <vector>

#include "tessera/arrays/tensor/coo_tensor.hpp"
#include "tessera/arrays/tensor/sliced_csr.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::arrays {

// Conversions between the tensors and matrices with views and the plain formats. All results are
// copies. T is float or double. The two dimensions of a tensor are the rows and columns of a
// matrix; a tensor with another number of dimensions is Error{InvalidArgument} if a matrix is
// needed. In costs, n is the number of entries that nnz() visits. Several threads may convert one
// settled tensor.

// Returns all elements row-major, with zeros where nothing is stored. Throws Error{LimitExceeded}
// if the number of elements does not fit in 64 bits. O(elements + n).
template <class T>
std::vector<T> to_dense_values(const CooTensor<T>& tensor);

// Return the dense matrix, with zeros where nothing is stored. O(elements + n).
template <class T>
Matrix<T> to_dense(const CooTensor<T>& tensor);
template <class T>
Matrix<T> to_dense(const SlicedCsr<T>& matrix);
template <class T>
Matrix<T> to_dense(const SlicedCsc<T>& matrix);

// Return element matrices that are legal by sparse/check.hpp; stored zeros are kept.
// O(n + rows + cols), and the sort of sparse::to_csr(Coo) if the tensor is sorted in another order.
template <class T>
sparse::Csr<T> to_csr(const CooTensor<T>& tensor);
template <class T>
sparse::Csc<T> to_csc(const CooTensor<T>& tensor);
template <class T>
sparse::Csr<T> to_csr(const SlicedCsr<T>& matrix);
template <class T>
sparse::Csc<T> to_csc(const SlicedCsc<T>& matrix);

// Returns the element matrix by a counting sort.
template <class T>
sparse::Csr<T> to_csr(const SlicedCsc<T>& matrix);

// Return a tensor or matrix with the entries of an element matrix. Throw Error{BadInput} for an
// illegal matrix and Error{InvalidArgument} for other blocks than 1 x 1.
template <class T>
CooTensor<T> to_tensor(const sparse::Csr<T>& matrix);
template <class T>
SlicedCsr<T> to_sliced(const sparse::Csr<T>& matrix);
template <class T>
SlicedCsc<T> to_sliced(const sparse::Csc<T>& matrix);

}  // namespace tessera::arrays
