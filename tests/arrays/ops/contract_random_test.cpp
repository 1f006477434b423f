#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tessera/arrays/tensor/contract.hpp"
#include "tessera/arrays/tensor/slices.hpp"
#include "tessera/host/spmm.hpp"
#include "tessera/tests/arrays/ops/differential.hpp"

namespace tessera::arrays {
namespace {

using test::Dense;
using test::expect_equal;
using test::Shape;

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

TEST(Contract, SumsOverAnyPairsOfDimensions) { test::for_random_cases(300, Contracts()); }

// The rows of a tensor go to the kernels of the layers, so its product has their bits.
template <class T>
void expect_bits_of_spmm() {
  Random random(7);
  const CooTensor<T> tensor = test::to_coo<T>(test::random_dense(random, {30, 50}));
  const sparse::Csr<T> csr = to_csr(tensor);
  Matrix<T> b(50, 20), wanted(30, 20);
  for (T& value : b.elements()) value = cast_value<T>(2 * random.unit() - 1);
  const DenseArray<T> dense{{50, 20}, {b.elements().begin(), b.elements().end()}};
  host::spmm<T>(
      host::CompressedRows<T, std::int32_t, std::int64_t>{
          30, 50, {1, 1}, csr.row_begin, csr.col, csr.values},
      std::as_const(b).view(), wanted.view(), test::one_thread());
  EXPECT_EQ(contract(tensor, {1}, dense, {0}, test::two_threads()).values,
            std::vector<T>(wanted.elements().begin(), wanted.elements().end()));
}

TEST(Contract, OfAMatrixWithADenseOneHasTheBitsOfSpmm) {
  expect_bits_of_spmm<float>();
  expect_bits_of_spmm<Half>();
  expect_bits_of_spmm<BFloat16>();
}

}  // namespace
}  // namespace tessera::arrays
