#include "tessera/arrays/mapped/products.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "tessera/arrays/tensor/contract.hpp"
#include "tessera/arrays/tensor/slices.hpp"
#include "tessera/base/error.hpp"
#include "tessera/host/spmm.hpp"
#include "tessera/tests/arrays/ops/differential.hpp"

namespace tessera::arrays {
namespace {

using test::Dense;
using test::expect_equal;
using test::Kind;
using test::Shape;

// Returns C = alpha * op(A) * B + beta * C.
Dense product(const Dense& a, Op op, const Dense& b, Dense c, double alpha, double beta) {
  const std::int64_t m = c.shape[0], n = c.shape[1], k = b.shape[0];
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t y = 0; y < k; ++y)
        sum += (op == Op::Plain ? a.values[std::size_t(i * k + y)]
                                : a.values[std::size_t(y * m + i)]) *
               b.values[std::size_t(y * n + j)];
      double& to = c.values[std::size_t(i * n + j)];
      to = alpha * sum + beta * to + 0.0;
    }
  return c;
}

struct Products {
  template <class X>
  void operator()(Random& random) const {
    using T = typename X::Value;
    const auto a = test::make(random, 2, Kind<X>());
    if (a.shape.size() != 2) return;
    const Op op = random.below(2) == 0 ? Op::Plain : Op::Transposed;
    const std::int64_t m = a.shape[op == Op::Plain ? 0 : 1], k = a.shape[op == Op::Plain ? 1 : 0];
    const std::int64_t n = random.below(4) == 0 ? 1 : 1 + random.below(40);
    const Dense b = test::random_dense(random, {k, n}), c = test::random_dense(random, {m, n});
    const auto alpha = double(1 + random.below(2)), beta = double(random.below(3) - 1);
    const auto from = test::to_array_of<T>(b);
    auto to = test::to_array_of<T>(c);
    const Scale<T> scale{cast_value<T>(alpha), cast_value<T>(beta), op};
    gemm<T>(a.view, {from.values.data(), k, n, n, 1}, {to.values.data(), m, n, n, 1}, scale);
    expect_equal(test::read(to), product(a.view_truth(), op, b, c, alpha, beta), "gemm");
  }
  template <class T, class X>
  static void gemm(const X& a, MatrixView<const T> b, MatrixView<T> c, Scale<T> scale) {
    arrays::gemm(a, b, c, scale, test::two_threads());
  }
};

TEST(ArrayProducts, MultiplyMatricesInEveryStorage) { test::for_random_cases(500, Products()); }

struct Batches {
  template <class X>
  void operator()(Random& random) const {
    using T = typename X::Value;
    const Dense truth = test::random_dense(random, test::random_shape(random, 3));
    const auto a = test::random_mapped<T>(random, truth);
    const std::int64_t g = truth.shape[0], m = truth.shape[1], k = truth.shape[2];
    const std::int64_t n = 1 + random.below(4);
    const Dense b = test::random_dense(random, {g, k, n});
    Dense wanted{{g, m, n}, {}};
    for (std::int64_t i = 0; i < g; ++i) {
      const auto part = [i](const Dense& whole, std::int64_t rows, std::int64_t cols) {
        const auto first = whole.values.begin() + i * rows * cols;
        return Dense{{rows, cols}, {first, first + rows * cols}};
      };
      const Dense zero{{m, n}, std::vector<double>(std::size_t(m * n))};
      const Dense one = product(part(truth, m, k), Op::Plain, part(b, k, n), zero, 1, 0);
      wanted.values.insert(wanted.values.end(), one.values.begin(), one.values.end());
    }
    auto c = test::to_array_of<T>(Dense{wanted.shape, std::vector<double>(wanted.values.size())});
    batched_gemm(a, test::to_array_of<T>(b), c, {}, test::two_threads());
    expect_equal(test::read(c), wanted, "batched_gemm");
  }
};

TEST(ArrayProducts, MultiplyBatchesSliceBySlice) { test::for_random_cases(150, Batches()); }

// Contracts dimension lists of random arrays with lengths that fit.
struct Contracts {
  template <class X>
  void operator()(Random& random) const {
    using T = typename X::Value;
    const Dense a = test::random_dense(random, test::random_shape(random, 1 + random.below(4), 4));
    Shape b_shape = test::random_shape(random, 1 + random.below(3), 4), a_dims, b_dims;
    const std::int64_t pairs = random.below(std::min(std::ssize(a.shape), std::ssize(b_shape)) + 1);
    const Shape a_order = shuffled(random, std::ssize(a.shape)),
                b_order = shuffled(random, std::ssize(b_shape));
    for (std::int64_t i = 0; i < pairs; ++i) {
      a_dims.push_back(a_order[std::size_t(i)]);
      b_dims.push_back(b_order[std::size_t(i)]);
      b_shape[std::size_t(b_dims.back())] = a.shape[std::size_t(a_dims.back())];
    }
    const Dense b = test::random_dense(random, b_shape);
    const Dense wanted = truth(a, a_dims, b, b_dims);
    const CooTensor<T> left = test::to_coo<T>(a), right = test::to_coo<T>(b);
    expect_equal(test::read(contract(left, a_dims, right, b_dims, test::two_threads())), wanted,
                 "two tensors");
    expect_equal(
        test::read(contract(left, a_dims, test::to_array_of<T>(b), b_dims, test::two_threads())),
        wanted, "a tensor and a dense array");
  }
  static Shape shuffled(Random& random, std::int64_t rank) {
    Shape order = test::range_of(0, rank);
    for (std::int64_t d = rank; d-- > 1;)
      std::swap(order[std::size_t(d)], order[std::size_t(random.below(d + 1))]);
    return order;
  }
  static Shape without(const Shape& shape, const Shape& dims) {
    Shape rest;
    for (std::int64_t d = 0; d < std::ssize(shape); ++d)
      if (std::find(dims.begin(), dims.end(), d) == dims.end()) rest.push_back(d);
    return rest;
  }
  static Dense truth(const Dense& a, const Shape& a_dims, const Dense& b, const Shape& b_dims) {
    const Shape a_free = without(a.shape, a_dims), b_free = without(b.shape, b_dims);
    Dense result;
    for (const std::int64_t d : a_free) result.shape.push_back(a.shape[std::size_t(d)]);
    for (const std::int64_t d : b_free) result.shape.push_back(b.shape[std::size_t(d)]);
    result.values.resize(std::size_t(test::elements_of(result.shape)));
    for (std::int64_t i = 0; i < std::ssize(a.values); ++i)
      for (std::int64_t j = 0; j < std::ssize(b.values); ++j) {
        const Shape at_a = test::index_at(a.shape, i), at_b = test::index_at(b.shape, j);
        bool meets = true;
        for (std::size_t p = 0; p < a_dims.size(); ++p)
          meets = meets && at_a[std::size_t(a_dims[p])] == at_b[std::size_t(b_dims[p])];
        if (!meets) continue;
        Shape at;
        for (const std::int64_t d : a_free) at.push_back(at_a[std::size_t(d)]);
        for (const std::int64_t d : b_free) at.push_back(at_b[std::size_t(d)]);
        result.values[std::size_t(test::position_at(result.shape, at))] +=
            a.values[std::size_t(i)] * b.values[std::size_t(j)];
      }
    return result;
  }
};

TEST(ArrayProducts, ContractAnyPairsOfDimensions) { test::for_random_cases(300, Contracts()); }

// A CSR goes to the kernels of the layers as it is, so its product has their bits.
template <class T>
void expect_bits_of_spmm() {
  Random random(7);
  const Dense truth = test::random_dense(random, {30, 50});
  CooTensor<T> tensor = test::to_coo<T>(truth);
  const sparse::Csr<T> csr = to_csr(tensor);
  const auto sliced = to_sliced(csr);
  Matrix<T> b(50, 20), got(30, 20), wanted(30, 20);
  for (T& value : b.elements()) value = cast_value<T>(2 * random.unit() - 1);
  gemm<SlicedCsr<T>>(sliced, b.view(), got.view(), {}, test::two_threads());
  host::spmm<T>(
      host::CompressedRows<T, std::int32_t, std::int64_t>{
          30, 50, {1, 1}, csr.row_begin, csr.col, csr.values},
      std::as_const(b).view(), wanted.view(), test::one_thread());
  EXPECT_EQ(got, wanted);
}

TEST(ArrayProducts, OfACsrHaveTheBitsOfSpmm) {
  expect_bits_of_spmm<float>();
  expect_bits_of_spmm<Half>();
  expect_bits_of_spmm<BFloat16>();
}

TEST(ArrayProducts, RefuseAResultThatSharesMemoryWithTheOperand) {
  const auto sliced = to_sliced(to_csr(CooTensor<float>({4, 4}, {0, 0, 1, 1}, {5, 6})));
  Matrix<float> b(4, 4);
  try {
    gemm<SlicedCsr<float>>(sliced, std::as_const(b).view(), b.view(), {}, test::one_thread());
    FAIL() << "C is B";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
  }
}

TEST(ArrayProducts, ACsrIsReadInPlaceAndOthersAreCopied) {
  const CooTensor<float> x({2, 3, 4}, {0, 0, 1, 1, 2, 3}, {5, 6});
  const auto csr = to_mapped(x, Mapping({2, 3, 4}), MappedKind::Csr);
  EXPECT_EQ(product_path(csr.select({Point{1}})), ProductPath::Csr);
  EXPECT_EQ(product_path(csr.select({Point{1}}).swapped(0, 1)), ProductPath::TransposedCsr);
  EXPECT_EQ(product_path(csr.select({Point{1}, Slice{{}, {}, -1}})), ProductPath::Copied);
  const auto strided = to_mapped(x, Mapping({2, 3, 4}), MappedKind::Strided);
  EXPECT_EQ(product_path(strided.select({Point{1}, Slice{{}, {}, -1}})), ProductPath::Strided);
  const auto flat = to_mapped(x, Mapping({2, 3, 4}), MappedKind::FlatCoo);
  EXPECT_EQ(product_path(flat.select({Point{1}})), ProductPath::Copied);
}

TEST(ArrayProducts, MatmulTakesTwoMappedArrays) {
  const CooTensor<std::int32_t> x({2, 2}, {0, 0, 1, 1}, {2, 3});
  const auto csr = to_mapped(x, Mapping({2, 2}), MappedKind::Csr);
  const auto strided = to_mapped(x, Mapping({2, 2}), MappedKind::Strided);
  EXPECT_EQ(matmul(csr, csr, test::one_thread()).get({1, 1}), 9);
  EXPECT_EQ(matmul(csr, strided, test::one_thread()).get({0, 0}), 4);
  EXPECT_EQ(matmul(strided, csr, test::one_thread()).get({1, 0}), 0);
}

TEST(ArrayProducts, RefuseShapesAndUnspecifiedValues) {
  const CooTensor<float> x({2, 3}, {0, 0}, {5});
  const auto csr = to_mapped(x, Mapping({2, 3}), MappedKind::Csr);
  std::vector<float> two(2), three(3);
  EXPECT_NO_THROW(gemv<float>(csr, three, two, {}, test::one_thread()));
  EXPECT_THROW(gemv<float>(csr, two, three, {}, test::one_thread()), Error);
  EXPECT_THROW(gemv<float>(csr.with_unspecified(1), three, two, {}, test::one_thread()), Error);
}

TEST(ArrayProducts, IntegerProductsAreExactOrRefused) {
  const CooTensor<std::int64_t> x({1, 2}, {0, 0, 0, 1}, {std::int64_t{1} << 40, 1});
  std::vector<std::int64_t> y(1);
  const std::vector<std::int64_t> small = {1 << 20, 5}, large = {std::int64_t{1} << 30, 5};
  gemv<CooTensor<std::int64_t>>(x, small, y, {}, test::one_thread());
  EXPECT_EQ(y[0], (std::int64_t{1} << 60) + 5);
  EXPECT_THROW(gemv<CooTensor<std::int64_t>>(x, large, y, {}, test::one_thread()), Error);
}

}  // namespace
}  // namespace tessera::arrays
