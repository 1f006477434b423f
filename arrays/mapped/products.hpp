#pragma once

#include <optional>
#include <span>
#include <string>

#include "tessera/arrays/mapped/mapped_array.hpp"
#include "tessera/arrays/tensor/blas.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"

namespace tessera::arrays {

// Products of mapped arrays of rank two and three with dense operands, over any type of
// ops/element.hpp. Elements that are not stored must be zero: another unspecified() is
// Error{InvalidArgument}. Shapes that do not match are Error{InvalidArgument} with all sizes. Dense
// operands must not overlap. The bits of a result do not depend on the number of threads. Sums of
// float and double are taken in that type in storage order, those of Half and BFloat16 in float and
// rounded once; those of integers are exact or Error{LimitExceeded}.

// The way in which a matrix enters a product.
enum class ProductPath {
  Csr,            // its rows are rows of a CSR storage; the values are not copied
  TransposedCsr,  // its columns are; a transposed product reads them as rows, and a plain one makes
                  // a copy with a counting sort
  Strided,        // a strided storage is read in place
  Copied          // every other storage: the entries are sorted into a CSR first
};

// Returns "csr", "transposed csr", "strided" or "copied".
std::string to_string(ProductPath path);

// Returns the way of a mapped array of rank two. A slice of a CSR keeps the way of the whole if its
// steps are 1 and each storage axis stands for one axis of the slice. O(1).
template <class T>
ProductPath product_path(const MappedArray<T>& a);

// Computes y = alpha * op(A) * x + beta * y with op(A) [m][k], x [k] and y [m].
// O(n + m) for n stored elements of a CSR, O(m * k) for a strided storage; a copy adds its sort.
template <class T>
void gemv(const MappedArray<T>& a, std::span<const T> x, std::span<T> y, Scale<T> scale,
          Executor& executor);

// Computes C = alpha * op(A) * B + beta * C with op(A) [m][k], B [k][n] and C [m][n]. Contiguous
// rows of B and C are fastest. O((stored + m) * n), for a strided storage O(m * k * n).
template <class T>
void gemm(const MappedArray<T>& a, MatrixView<const T> b, MatrixView<T> c, Scale<T> scale,
          Executor& executor);

// Computes the products C[i] = alpha * op(A[i]) * B[i] + beta * C[i] of arrays of rank three: A
// [g][m][k], B [g][k][n] and C [g][m][n], of which A may have any storage. Each A[i] is a slice and
// takes its own path, so it costs what the products cost one by one.
template <class T>
void batched_gemm(const MappedArray<T>& a, const DenseArray<T>& b, DenseArray<T>& c, Scale<T> scale,
                  Executor& executor);

// Returns A * B for two mapped arrays of rank two. If B has a strided storage, the result is
// strided; otherwise both are sparse and so is the result, a CSR that stores every place with a
// product. The cost is that of gemm() or contract().
template <class T>
MappedArray<T> matmul(const MappedArray<T>& a, const MappedArray<T>& b, Executor& executor);

}  // namespace tessera::arrays
