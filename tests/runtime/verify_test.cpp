#include "tessera/runtime/verify.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "tessera/base/random.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::runtime {
namespace {

struct Product {
  sparse::Csr<float> weights = sparse::random_pattern(12, 20, {1, 1}, 0.4, 3);
  Matrix<float> in{20, 5}, out{12, 5};

  Product() {
    Random random(5);
    for (float& v : weights.values) v = float(random.unit() - 0.5);
    for (float& v : in.elements()) v = float(random.unit() - 0.5);
    for (std::int64_t r = 0; r < 12; ++r)
      for (std::int64_t b = weights.row_begin[std::size_t(r)];
           b < weights.row_begin[std::size_t(r) + 1]; ++b)
        for (std::int64_t z = 0; z < 5; ++z)
          out(r, z) += weights.values[std::size_t(b)] * in(weights.col[std::size_t(b)], z);
  }
  Verdict verify() const { return verify_product<float>(weights, in.view(), out.view(), {}); }
};

TEST(Verify, AcceptsAPlainFloatLoop) {
  const Verdict verdict = Product().verify();
  EXPECT_TRUE(verdict.ok()) << to_string(verdict);
  EXPECT_EQ(verdict.compared, 60);
  EXPECT_GT(verdict.worst, 0.0);
}

TEST(Verify, FindsOnePartInAHundredThousandAndSaysWhere) {
  Product product;
  product.out(7, 3) += std::abs(product.out(7, 3)) * 1e-5f + 1e-5f;
  const Verdict verdict = product.verify();
  EXPECT_EQ(verdict.wrong, 1);
  EXPECT_EQ(verdict.worst_row, 7);
  EXPECT_EQ(verdict.worst_col, 3);
  EXPECT_NE(to_string(verdict).find("WRONG: 1 of 60 results, the worst at row 7, column 3"),
            std::string::npos)
      << to_string(verdict);
}

TEST(Verify, NotANumberIsWrong) {
  Product product;
  product.out(0, 0) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(product.verify().wrong, 1);
}

TEST(Verify, AMissingRowIsWrong) {
  Product product;
  std::int64_t present = 0;
  for (std::int64_t z = 0; z < 5; ++z) {
    present += product.out(4, z) != 0;
    product.out(4, z) = 0;
  }
  ASSERT_GT(present, 0);
  EXPECT_EQ(product.verify().wrong, present);
}

TEST(Verify, AGradientOfAnotherPatternIsWrongAltogether) {
  const Product product;
  sparse::Csr<float> gradient = sparse::random_pattern(12, 20, {1, 1}, 0.4, 4);
  const Verdict verdict =
      verify_gradient<float>(product.weights, gradient, product.out.view(), product.in.view(), {});
  EXPECT_EQ(verdict.wrong, static_cast<std::int64_t>(product.weights.values.size()));
}

TEST(Verify, AGradientIsTheProductOfTheTwoRows) {
  const Product product;
  sparse::Csr<float> gradient = product.weights;
  for (std::int64_t r = 0; r < 12; ++r)
    for (std::int64_t b = gradient.row_begin[std::size_t(r)];
         b < gradient.row_begin[std::size_t(r) + 1]; ++b) {
      float sum = 0;
      for (std::int64_t z = 0; z < 5; ++z)
        sum += product.out(r, z) * product.in(gradient.col[std::size_t(b)], z);
      gradient.values[std::size_t(b)] = sum;
    }
  const auto verify = [&] {
    return verify_gradient<float>(product.weights, gradient, product.out.view(), product.in.view(),
                                  {});
  };
  EXPECT_TRUE(verify().ok()) << to_string(verify());
  std::swap(gradient.values.front(), gradient.values.back());
  EXPECT_EQ(verify().wrong, 2);
}

}  // namespace
}  // namespace tessera::runtime
