#include <algorithm>
#include <vector>

#include "tessera/arrays/internal/exact.hpp"
#include "tessera/arrays/internal/fast_product.hpp"
#include "tessera/arrays/internal/row_product.hpp"
#include "tessera/arrays/internal/shape.hpp"
#include "tessera/arrays/internal/storage.hpp"
#include "tessera/arrays/tensor/contract.hpp"
#include "tessera/arrays/tensor/internal/contract_terms.hpp"
#include "tessera/base/radix_sort.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::arrays {
namespace {

using internal::axes_of;
using internal::free_of;
using internal::Operand;
using internal::operand_of;
using internal::Places;
using internal::require_matching;
using internal::summed_of;
using internal::Term;
using internal::terms_of;

// Returns a dense array as a matrix [summed][free], both in the order of their dimensions.
template <class T>
Matrix<T> as_matrix(const DenseArray<T>& b, const Operand& operand) {
  Matrix<T> matrix(operand.summed.count, operand.free.count);
  std::vector<std::int32_t> index(b.shape.size());
  std::size_t at = 0;
  internal::for_each_index(b.shape, [&](std::span<const std::int64_t> i) {
    std::copy(i.begin(), i.end(), index.begin());
    matrix(std::int64_t(operand.summed.at(index.data())),
           std::int64_t(operand.free.at(index.data()))) = b.values[at++];
  });
  return matrix;
}

// Returns the entries as a matrix [free][summed]. They are sorted by free and summed place.
template <class T>
sparse::Csr<T> as_rows(const std::vector<Term<T>>& terms, const Operand& operand) {
  checked_int32(operand.summed.count, "places of the summed dimensions");
  sparse::Csr<T> csr;
  csr.rows = operand.free.count;
  csr.cols = operand.summed.count;
  csr.row_begin.assign(static_cast<std::size_t>(csr.rows) + 1, 0);
  for (const Term<T>& term : terms) {
    ++csr.row_begin[std::size_t(term.free) + 1];
    csr.col.push_back(static_cast<std::int32_t>(term.summed));
    csr.values.push_back(term.value);
  }
  for (std::size_t r = 1; r < csr.row_begin.size(); ++r) csr.row_begin[r] += csr.row_begin[r - 1];
  return csr;
}

}  // namespace

template <class T>
DenseArray<T> contract(const CooTensor<T>& a, const std::vector<std::int64_t>& a_dims,
                       const DenseArray<T>& b, const std::vector<std::int64_t>& b_dims,
                       Executor& executor) {
  check(b);
  const Operand of_a = operand_of(a, a_dims);
  const Operand of_b = operand_of(axes_of(b.shape), b_dims);
  require_matching(of_a.summed, of_b.summed);
  DenseArray<T> result;
  for (const Places* places : {&of_a.free, &of_b.free})
    for (const ViewAxis& axis : places->axes) result.shape.push_back(axis.length);
  result.values.resize(static_cast<std::size_t>(internal::checked_elements(result.shape)));
  std::vector<Term<T>> terms = terms_of(a, of_a), scratch;
  radix_sort(terms, scratch, of_a.summed.bits(), summed_of<T>);
  radix_sort(terms, scratch, of_a.free.bits(), free_of<T>);
  const sparse::Csr<T> rows = as_rows(terms, of_a);
  const Matrix<T> dense = as_matrix(b, of_b);
  const internal::RowsView<T> view{rows.rows,
                                   rows.cols,
                                   rows.row_begin.data(),
                                   rows.row_begin.data() + 1,
                                   rows.values.data(),
                                   rows.col.data(),
                                   0};
  internal::multiply_rows<T>(view, dense.view(),
                             {result.values.data(), rows.rows, of_b.free.count, of_b.free.count, 1},
                             T(1), T(0), executor);
  return result;
}

#define TESSERA_INSTANTIATE_CONTRACT(T)                                                   \
  template DenseArray<T> contract(const CooTensor<T>&, const std::vector<std::int64_t>&,  \
                                  const DenseArray<T>&, const std::vector<std::int64_t>&, \
                                  Executor&);

TESSERA_FOR_EACH_ELEMENT(TESSERA_INSTANTIATE_CONTRACT)

#undef TESSERA_INSTANTIATE_CONTRACT

}  // namespace tessera::arrays
