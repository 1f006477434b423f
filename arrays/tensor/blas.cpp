#include "tessera/arrays/tensor/blas.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "tessera/arrays/internal/csr_product.hpp"
#include "tessera/arrays/internal/norm.hpp"
#include "tessera/arrays/internal/row_product.hpp"
#include "tessera/arrays/tensor/internal/visit_sparse.hpp"
#include "tessera/base/error.hpp"

namespace tessera::arrays {
namespace {

template <class X>
void require_size(const X& x, std::size_t size) {
  const std::int64_t expected = internal::vector_size(x);
  if (expected != static_cast<std::int64_t>(size))
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("the sparse vector has {} elements and the dense one {}; they must "
                            "have equally many",
                            expected, size));
}

// Returns the position of the best element by `better`. A number is better than NaN; the lowest
// position wins a tie.
template <class X, class Better>
std::optional<std::int64_t> best_position(const X& x, Better better) {
  internal::vector_size(x);
  std::optional<std::int64_t> position;
  double best = 0;
  internal::visit_vector(x, [&](std::int64_t i, typename X::Value value) {
    const double magnitude = std::abs(double(value));
    const bool is_first = !position.has_value();
    const bool beats_nan = std::isnan(best) && !std::isnan(magnitude);
    const bool is_tie = magnitude == best || (std::isnan(magnitude) && std::isnan(best));
    if (is_first || beats_nan || better(magnitude, best) || (is_tie && i < *position))
      position = i, best = magnitude;
  });
  return position;
}

template <class T>
void assign_vector(CooTensor<T>& x, const std::vector<T>& values) {
  const std::vector<std::int64_t> shape = x.shape();
  std::vector<std::int64_t> index(shape.size(), 0);
  std::size_t longest = 0;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != 1) longest = d;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!index.empty()) index[longest] = static_cast<std::int64_t>(i);
    x.put(index, values[i]);
  }
}
template <class Sparse, class T>
void assign_vector(Sparse& x, const std::vector<T>& values) {
  // One of the two sizes is 1, so the values are contiguous in both cases.
  x.assign({values.data(), x.rows(), x.cols(), x.rows() == 1 ? 0 : 1, 1});
}

template <class T>
void scale_values(CooTensor<T>& x, T alpha) {
  internal::visit(x, [alpha](const std::int32_t*, T& value) { value *= alpha; });
}
template <class Sparse, class T>
void scale_values(Sparse& x, T alpha) {
  x.scale(alpha);
}

internal::MatrixShape turned(internal::MatrixShape shape, Op op) {
  return op == Op::Plain ? shape : internal::MatrixShape{shape.cols, shape.rows};
}

template <class T>
void scale_result(MatrixView<T> c, T beta) {
  for (std::int64_t i = 0; i < c.rows; ++i)
    for (std::int64_t j = 0; j < c.cols; ++j) c(i, j) = beta == T(0) ? T(0) : beta * c(i, j);
}

// Computes y += alpha * A * x.
template <class A, class T>
void add_product(const A& a, T alpha, const T* x, std::span<T> y) {
  internal::visit_matrix(a, [&](std::int64_t r, std::int64_t c, T value) {
    y[std::size_t(r)] += alpha * value * x[c];
  });
}

template <class T>
void add_product(const SlicedCsr<T>& a, T alpha, const T* x, std::span<T> y) {
  const CsrArrays<T>& arrays = a.arrays();
  internal::CsrProduct<T> product{a.rows(),
                                  arrays.row_begin.data() + a.first_row(),
                                  arrays.row_end.data() + a.first_row(),
                                  arrays.values.data(),
                                  arrays.columns.data(),
                                  static_cast<std::int32_t>(a.first_col()),
                                  x,
                                  y.data(),
                                  alpha};
  if (a.cols() == arrays.cols) return internal::add_product(product);
  const std::vector<std::int64_t> begin = a.row_begin(), end = a.row_end();
  product.begin = begin.data(), product.end = end.data();
  internal::add_product(product);
}

// Computes y += alpha * transpose(A) * x.
template <class A, class T>
void add_turned_product(const A& a, T alpha, const T* x, std::span<T> y) {
  internal::visit_matrix(a, [&](std::int64_t r, std::int64_t c, T value) {
    y[std::size_t(c)] += alpha * value * x[r];
  });
}
template <class T>
void add_turned_product(const SlicedCsc<T>& a, T alpha, const T* x, std::span<T> y) {
  add_product(a.transposed(), alpha, x, y);
}

}  // namespace

template <class X>
typename X::Value dot(const X& x, std::span<const typename X::Value> y) {
  require_size(x, y.size());
  double sum = 0;
  internal::visit_vector(x, [&](std::int64_t i, typename X::Value value) {
    sum += double(value) * double(y[std::size_t(i)]);
  });
  return static_cast<typename X::Value>(sum);
}

template <class X>
typename X::Value nrm2(const X& x) {
  internal::vector_size(x);
  return static_cast<typename X::Value>(internal::euclidean_norm([&](auto&& see) {
    internal::visit_vector(x, [&](std::int64_t, typename X::Value value) { see(double(value)); });
  }));
}

template <class X>
typename X::Value asum(const X& x) {
  internal::vector_size(x);
  double sum = 0;
  internal::visit_vector(
      x, [&](std::int64_t, typename X::Value value) { sum += std::abs(double(value)); });
  return static_cast<typename X::Value>(sum);
}

template <class X>
std::optional<std::int64_t> iamax(const X& x) {
  return best_position(x, [](double a, double b) { return a > b; });
}

template <class X>
std::optional<std::int64_t> iamin(const X& x) {
  return best_position(x, [](double a, double b) { return a < b; });
}

template <class X>
void axpy(typename X::Value alpha, const X& x, std::span<typename X::Value> y) {
  require_size(x, y.size());
  internal::visit_vector(
      x, [&](std::int64_t i, typename X::Value value) { y[std::size_t(i)] += alpha * value; });
}

template <class X>
void rot(X& x, std::span<typename X::Value> y, typename X::Value cosine, typename X::Value sine) {
  require_size(x, y.size());
  std::vector<typename X::Value> dense(y.size());
  internal::visit_vector(
      x, [&](std::int64_t i, typename X::Value value) { dense[std::size_t(i)] = value; });
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto old_x = dense[i], old_y = y[i];
    dense[i] = cosine * old_x + sine * old_y;
    y[i] = cosine * old_y - sine * old_x;
  }
  assign_vector(x, dense);
}

template <class X>
void scal(typename X::Value alpha, X& x) {
  scale_values(x, alpha);
}

template <class A>
void gemv(const A& a, std::span<const typename A::Value> x, std::span<typename A::Value> y,
          Scale<typename A::Value> scale) {
  const internal::MatrixShape shape = turned(internal::matrix_shape(a), scale.op);
  if (shape.cols != std::int64_t(x.size()) || shape.rows != std::int64_t(y.size()))
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("gemv: a matrix of {} x {} needs x of {} and y of {} elements; they "
                            "have {} and {}",
                            shape.rows, shape.cols, shape.cols, shape.rows, x.size(), y.size()));
  scale_result<typename A::Value>({y.data(), shape.rows, 1, 1, 1}, scale.beta);
  if (scale.op == Op::Plain)
    add_product(a, scale.alpha, x.data(), y);
  else
    add_turned_product(a, scale.alpha, x.data(), y);
}

template <class A>
void gemm(const A& a, MatrixView<const typename A::Value> b, MatrixView<typename A::Value> c,
          Scale<typename A::Value> scale) {
  internal::Serial on_this_thread;
  gemm<A>(a, b, c, scale, on_this_thread);
}

#define TESSERA_INSTANTIATE_BLAS(X, T)                                         \
  template T dot(const X<T>&, std::span<const T>);                             \
  template T nrm2(const X<T>&);                                                \
  template T asum(const X<T>&);                                                \
  template std::optional<std::int64_t> iamax(const X<T>&);                     \
  template std::optional<std::int64_t> iamin(const X<T>&);                     \
  template void axpy(T, const X<T>&, std::span<T>);                            \
  template void rot(X<T>&, std::span<T>, T, T);                                \
  template void scal(T, X<T>&);                                                \
  template void gemv(const X<T>&, std::span<const T>, std::span<T>, Scale<T>); \
  template void gemm(const X<T>&, MatrixView<const T>, MatrixView<T>, Scale<T>);

TESSERA_INSTANTIATE_BLAS(CooTensor, float)
TESSERA_INSTANTIATE_BLAS(CooTensor, double)
TESSERA_INSTANTIATE_BLAS(SlicedCsr, float)
TESSERA_INSTANTIATE_BLAS(SlicedCsr, double)
TESSERA_INSTANTIATE_BLAS(SlicedCsc, float)
TESSERA_INSTANTIATE_BLAS(SlicedCsc, double)

#undef TESSERA_INSTANTIATE_BLAS

}  // namespace tessera::arrays
