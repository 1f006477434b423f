#include <fmt/format.h>

#include <utility>
#include <vector>

#include "tessera/arrays/internal/exact.hpp"
#include "tessera/arrays/internal/fast_product.hpp"
#include "tessera/arrays/internal/row_product.hpp"
#include "tessera/arrays/tensor/blas.hpp"
#include "tessera/arrays/tensor/internal/visit_sparse.hpp"
#include "tessera/arrays/tensor/slices.hpp"
#include "tessera/base/error.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::arrays {
namespace {

// The rows of op(A), with the arrays that had to be made for them.
template <class T>
struct RowsOf {
  sparse::Csr<T> copy;
  std::vector<std::int64_t> begin, end;
  internal::RowsView<T> view;

  RowsOf(const SlicedCsr<T>& a, Op op) {
    if (op == Op::Plain)
      take(a);
    else
      take(transpose(to_csr(a)));
  }
  RowsOf(const SlicedCsc<T>& a, Op op) {
    if (op == Op::Transposed)
      take(a.transposed());
    else
      take(to_csr(a));
  }
  RowsOf(const CooTensor<T>& a, Op op) {
    internal::matrix_shape(a);
    sparse::Csr<T> csr = to_csr(a);
    take(op == Op::Plain ? std::move(csr) : transpose(csr));
  }
  RowsOf(const RowsOf&) = delete;

 private:
  void take(const SlicedCsr<T>& a) {
    const CsrArrays<T>& arrays = a.arrays();
    view = {a.rows(),
            a.cols(),
            arrays.row_begin.data() + a.first_row(),
            arrays.row_end.data() + a.first_row(),
            arrays.values.data(),
            arrays.columns.data(),
            a.first_col()};
    if (a.cols() == arrays.cols) return;
    begin = a.row_begin();
    end = a.row_end();
    view.begin = begin.data();
    view.end = end.data();
  }
  void take(sparse::Csr<T> csr) {
    copy = std::move(csr);
    view = {copy.rows,
            copy.cols,
            copy.row_begin.data(),
            copy.row_begin.data() + 1,
            copy.values.data(),
            copy.col.data(),
            0};
  }
};

}  // namespace

template <class A>
void gemv(const A& a, std::span<const typename A::Value> x, std::span<typename A::Value> y,
          Scale<typename A::Value> scale, Executor& executor) {
  gemm<A>(a, {x.data(), std::ssize(x), 1, 1, 1}, {y.data(), std::ssize(y), 1, 1, 1}, scale,
          executor);
}

template <class A>
void gemm(const A& a, MatrixView<const typename A::Value> b, MatrixView<typename A::Value> c,
          Scale<typename A::Value> scale, Executor& executor) {
  using T = typename A::Value;
  const RowsOf<T> rows(a, scale.op);
  if (rows.view.cols != b.rows || rows.view.rows != c.rows || b.cols != c.cols)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("gemm: {} x {} times {} x {} does not give {} x {}", rows.view.rows,
                            rows.view.cols, b.rows, b.cols, c.rows, c.cols));
  internal::multiply_rows<T>(rows.view, b, c, scale.alpha, scale.beta, executor);
}

#define TESSERA_INSTANTIATE_BLAS(X, T)                                                    \
  template void gemv(const X<T>&, std::span<const T>, std::span<T>, Scale<T>, Executor&); \
  template void gemm(const X<T>&, MatrixView<const T>, MatrixView<T>, Scale<T>, Executor&);
#define TESSERA_INSTANTIATE_BLAS_OF(T)   \
  TESSERA_INSTANTIATE_BLAS(CooTensor, T) \
  TESSERA_INSTANTIATE_BLAS(SlicedCsr, T) \
  TESSERA_INSTANTIATE_BLAS(SlicedCsc, T)

TESSERA_FOR_EACH_ELEMENT(TESSERA_INSTANTIATE_BLAS_OF)

#undef TESSERA_INSTANTIATE_BLAS
#undef TESSERA_INSTANTIATE_BLAS_OF

}  // namespace tessera::arrays
