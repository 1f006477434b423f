#pragma once

#include <span>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::host {

// Writes the products C[g] = op(A)[g][m][k] * op(B)[g][k][n] of two dense matrices at a block mask
// for each group, in the order of the masks' values, group after group. Elements that a mask stores
// as 0 become 0, as those of the other triangle in sparse/block_mask.hpp do. The matrices of all
// groups are stored one below the other; a transposed one is stored as [k][m], or [n][k]. It is
// sddmm() for each group, which says how operands are read and when they are copied. T is float,
// Half or BFloat16. Throws Error{InvalidArgument} if the sizes do not agree, and the errors of
// sddmm(). Example: mask_product<float>({&mask, 1}, false, true, q.view(), k.view(), scores, *on).
template <class T>
void mask_product(std::span<const sparse::Csr<float>> masks, bool transpose_lhs, bool transpose_rhs,
                  MatrixView<const T> a, MatrixView<const T> b, std::span<float> values,
                  Executor& executor);

}  // namespace tessera::host
