#include "tessera/arrays/mapped/products.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/arrays/internal/exact.hpp"
#include "tessera/arrays/internal/fast_product.hpp"
#include "tessera/arrays/internal/row_product.hpp"
#include "tessera/arrays/internal/shape.hpp"
#include "tessera/arrays/mapped/internal/mapped_store.hpp"
#include "tessera/arrays/tensor/contract.hpp"
#include "tessera/base/error.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::arrays {
namespace {

using internal::MappedAccess;
using internal::RowsView;

// Returns the axis of the array for which a storage axis stands alone, with consecutive indices;
// -1 for an axis that a point removed, and nothing otherwise.
std::optional<std::int64_t> single_axis(const MapAxis& axis) {
  if (axis.terms.empty()) return -1;
  if (axis.terms.size() > 1 || axis.terms[0].stride != 1) return std::nullopt;
  return axis.terms[0].axis;
}

// The part of a CSR that a mapped matrix shows: rows row_first ..., columns col_first ....
struct CsrWindow {
  std::int64_t row_first = 0, col_first = 0;
  bool is_transposed = false;
};

template <class T>
std::optional<CsrWindow> csr_window(const MappedArray<T>& a) {
  if (a.template storage<sparse::Csr<T>>() == nullptr) return std::nullopt;
  const std::vector<MapAxis>& axes = a.mapping().axes();
  const auto row = single_axis(axes[0]), col = single_axis(axes[1]);
  if (!row || !col || *row < 0 || *col < 0) return std::nullopt;
  return CsrWindow{axes[0].offset, axes[1].offset, *row == 1};
}

// Returns true if the window is the whole CSR.
template <class T>
bool shows_all(const MappedArray<T>& a, CsrWindow window) {
  const sparse::Csr<T>& csr = *a.template storage<sparse::Csr<T>>();
  const std::int64_t rows = a.shape()[window.is_transposed ? 1 : 0];
  const std::int64_t cols = a.shape()[window.is_transposed ? 0 : 1];
  return window.row_first == 0 && window.col_first == 0 && rows == csr.rows && cols == csr.cols;
}

template <class T>
void require_matrix(const MappedArray<T>& a) {
  if (a.rank() != 2)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("a mapped array of {} is no matrix; it must have two dimensions",
                            internal::shape_text(a.shape())));
  if (a.unspecified() != std::optional(T(0)) && !a.is_full())
    throw Error(ErrorCode::InvalidArgument,
                "a product needs elements that are not stored to be zero; see with_unspecified");
}

// The rows of a window of a CSR. Pointers are computed if the window leaves columns out.
template <class T>
struct WindowRows {
  std::vector<std::int64_t> begin, end;
  RowsView<T> view;

  WindowRows(const sparse::Csr<T>& csr, CsrWindow window, std::int64_t rows, std::int64_t cols) {
    view = {rows,
            cols,
            csr.row_begin.data() + window.row_first,
            csr.row_begin.data() + window.row_first + 1,
            csr.values.data(),
            csr.col.data(),
            window.col_first};
    if (cols == csr.cols) return;
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto first = csr.col.begin() + view.begin[r], last = csr.col.begin() + view.end[r];
      begin.push_back(std::lower_bound(first, last, window.col_first) - csr.col.begin());
      end.push_back(std::lower_bound(first, last, window.col_first + cols) - csr.col.begin());
    }
    view.begin = begin.data();
    view.end = end.data();
  }
  WindowRows(const WindowRows&) = delete;
};

// Returns a view of a strided storage as a matrix.
template <class T>
MatrixView<const T> strided_view(const MappedArray<T>& a) {
  const auto& storage = std::get<StridedStorage<T>>(MappedAccess<T>::store(a)->any);
  MatrixView<const T> view{nullptr, a.shape()[0], a.shape()[1], 0, 0};
  std::int64_t first = 0;
  for (std::size_t k = 0; k < storage.strides.size(); ++k) {
    const MapAxis& axis = a.mapping().axes()[k];
    first += axis.offset * storage.strides[k];
    for (const MapTerm& term : axis.terms)
      (term.axis == 0 ? view.row_stride : view.col_stride) += term.stride * storage.strides[k];
  }
  Buffer<T> values = storage.values;
  if (view.rows > 0 && view.cols > 0) view.data = &values.reference(first);
  return view;
}

template <class T>
MatrixView<const T> turned(MatrixView<const T> a, Op op) {
  return op == Op::Plain ? a : a.transposed();
}

// Computes C = alpha * A * B + beta * C for a dense A: a row of A is a sparse row that stores every
// column, so the kernels and their order of sums are the same.
template <class T>
void multiply_dense(MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> c, Scale<T> scale,
                    Executor& executor) {
  std::vector<std::int32_t> columns(static_cast<std::size_t>(a.cols));
  for (std::size_t i = 0; i < columns.size(); ++i) columns[i] = static_cast<std::int32_t>(i);
  const bool in_place = a.rows_are_contiguous();
  executor.for_each(a.rows, [&](std::int64_t r) {
    std::vector<T> row;
    if (!in_place)
      for (std::int64_t k = 0; k < a.cols; ++k) row.push_back(a(r, k));
    const std::int64_t begin = 0, end = a.cols;
    const RowsView<T> one{1, a.cols, &begin, &end, in_place ? a.row(r) : row.data(), columns.data(),
                          0};
    internal::multiply_some_rows<T>(one, b, c.sub({r, r + 1}, {0, c.cols}), scale.alpha,
                                    scale.beta);
  });
}

template <class T>
void multiply_csr(const sparse::Csr<T>& csr, MatrixView<const T> b, MatrixView<T> c, Scale<T> scale,
                  Executor& executor) {
  const WindowRows<T> rows(csr, {}, csr.rows, csr.cols);
  internal::multiply_rows<T>(rows.view, b, c, scale.alpha, scale.beta, executor);
}

template <class T>
void multiply(const MappedArray<T>& a, MatrixView<const T> b, MatrixView<T> c, Scale<T> scale,
              Executor& executor) {
  const bool is_plain = scale.op == Op::Plain;
  if (product_path(a) == ProductPath::Strided)
    return multiply_dense<T>(turned(strided_view(a), scale.op), b, c, scale, executor);
  const auto window = csr_window(a);
  if (window && window->is_transposed != is_plain) {
    const sparse::Csr<T>& csr = *a.template storage<sparse::Csr<T>>();
    const WindowRows<T> rows(csr, *window, c.rows, b.rows);
    return internal::multiply_rows<T>(rows.view, b, c, scale.alpha, scale.beta, executor);
  }
  if (window && shows_all(a, *window))
    return multiply_csr(transpose(*a.template storage<sparse::Csr<T>>()), b, c, scale, executor);
  const sparse::Csr<T> copy = to_csr(is_plain ? a : a.swapped(0, 1));
  multiply_csr(copy, b, c, scale, executor);
}

}  // namespace

std::string to_string(ProductPath path) {
  static constexpr std::string_view kNames[] = {"csr", "transposed csr", "strided", "copied"};
  return std::string(kNames[int(path)]);
}

template <class T>
ProductPath product_path(const MappedArray<T>& a) {
  if (a.template storage<StridedStorage<T>>() != nullptr) return ProductPath::Strided;
  const auto window = a.rank() == 2 ? csr_window(a) : std::nullopt;
  if (!window) return ProductPath::Copied;
  return window->is_transposed ? ProductPath::TransposedCsr : ProductPath::Csr;
}

template <class T>
void gemv(const MappedArray<T>& a, std::span<const T> x, std::span<T> y, Scale<T> scale,
          Executor& executor) {
  gemm<T>(a, {x.data(), std::ssize(x), 1, 1, 1}, {y.data(), std::ssize(y), 1, 1, 1}, scale,
          executor);
}

template <class T>
void gemm(const MappedArray<T>& a, MatrixView<const T> b, MatrixView<T> c, Scale<T> scale,
          Executor& executor) {
  require_matrix(a);
  const bool is_plain = scale.op == Op::Plain;
  const std::int64_t m = a.shape()[is_plain ? 0 : 1], k = a.shape()[is_plain ? 1 : 0];
  if (k != b.rows || m != c.rows || b.cols != c.cols)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("gemm: {} x {} times {} x {} does not give {} x {}", m, k, b.rows,
                            b.cols, c.rows, c.cols));
  multiply(a, b, c, scale, executor);
}

template <class T>
void batched_gemm(const MappedArray<T>& a, const DenseArray<T>& b, DenseArray<T>& c, Scale<T> scale,
                  Executor& executor) {
  check(b);
  check(c);
  const bool fits = a.rank() == 3 && b.shape.size() == 3 && c.shape.size() == 3 &&
                    a.shape()[0] == b.shape[0] && a.shape()[0] == c.shape[0];
  if (!fits)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("batched_gemm: {} times {} does not give {}; all three need rank three "
                            "and equally many matrices",
                            internal::shape_text(a.shape()), internal::shape_text(b.shape),
                            internal::shape_text(c.shape)));
  for (std::int64_t i = 0; i < a.shape()[0]; ++i) {
    const MatrixView<const T> from{b.values.data() + i * b.shape[1] * b.shape[2], b.shape[1],
                                   b.shape[2], b.shape[2], 1};
    const MatrixView<T> to{c.values.data() + i * c.shape[1] * c.shape[2], c.shape[1], c.shape[2],
                           c.shape[2], 1};
    gemm<T>(a.select({Point{i}}), from, to, scale, executor);
  }
}

template <class T>
MappedArray<T> matmul(const MappedArray<T>& a, const MappedArray<T>& b, Executor& executor) {
  require_matrix(a);
  require_matrix(b);
  const std::int64_t m = a.shape()[0], n = b.shape()[1];
  if (product_path(b) != ProductPath::Strided)
    return to_mapped(contract(to_tensor(a), {1}, to_tensor(b), {0}, executor), Mapping({m, n}),
                     MappedKind::Csr);
  if (a.shape()[1] != b.shape()[0])
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("matmul: {} times {} is not possible; the inner lengths differ",
                            internal::shape_text(a.shape()), internal::shape_text(b.shape())));
  std::vector<T> values(static_cast<std::size_t>(internal::checked_elements(std::vector{m, n})));
  multiply<T>(a, strided_view(b), {values.data(), m, n, n, 1}, {}, executor);
  return MappedArray<T>(Mapping({m, n}),
                        StridedStorage<T>{Buffer<T>(std::move(values)), {m, n}, {n, 1}});
}

#define TESSERA_INSTANTIATE_PRODUCTS(T)                                                   \
  template ProductPath product_path(const MappedArray<T>&);                               \
  template void gemv(const MappedArray<T>&, std::span<const T>, std::span<T>, Scale<T>,   \
                     Executor&);                                                          \
  template void gemm(const MappedArray<T>&, MatrixView<const T>, MatrixView<T>, Scale<T>, \
                     Executor&);                                                          \
  template void batched_gemm(const MappedArray<T>&, const DenseArray<T>&, DenseArray<T>&, \
                             Scale<T>, Executor&);                                        \
  template MappedArray<T> matmul(const MappedArray<T>&, const MappedArray<T>&, Executor&);

TESSERA_FOR_EACH_ELEMENT(TESSERA_INSTANTIATE_PRODUCTS)

#undef TESSERA_INSTANTIATE_PRODUCTS

}  // namespace tessera::arrays
