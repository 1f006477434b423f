#include "tessera/arrays/internal/csr_product.hpp"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <vector>

#include "tessera/base/random.hpp"

namespace tessera::arrays {
namespace {

// Rows of 0 to 70 entries with gaps between them, seen from column `first` on.
template <class T>
struct RandomRows {
  std::vector<std::int64_t> begin, end;
  std::vector<T> values, x;
  std::vector<std::int32_t> columns;

  explicit RandomRows(std::int64_t first) {
    Random random(/*seed=*/9);
    for (std::int64_t length = 0; length <= 70; ++length) {
      begin.push_back(std::ssize(values));
      for (std::int64_t k = 0; k < length; ++k) {
        values.push_back(T(random.unit() - 0.5));
        columns.push_back(static_cast<std::int32_t>(first + k * 3 + random.below(3)));
      }
      end.push_back(std::ssize(values));
      values.push_back(T(1000)), columns.push_back(0);
    }
    for (int i = 0; i < 70 * 3; ++i) x.push_back(T(random.unit() - 0.5));
  }
  internal::CsrProduct<T> product(std::vector<T>& y, std::int32_t first) const {
    return {std::ssize(begin), begin.data(), end.data(), values.data(), columns.data(), first,
            x.data(),          y.data(),     T(0.7)};
  }
};

template <class T>
void expect_bits_of_the_slow_twin() {
  for (const std::int32_t first : {0, 5}) {
    const RandomRows<T> rows(first);
    std::vector<T> y(rows.begin.size(), T(0.25)), expected = y;
    internal::add_product_plainly(rows.product(expected, first));
    internal::add_product(rows.product(y, first));
    EXPECT_EQ(y, expected);
    EXPECT_NE(y, std::vector<T>(y.size(), T(0.25)));
  }
}

// Every set this computer has; a target without code of its own falls back to a lower one.
TEST(CsrProduct, HasTheBitsOfItsSlowTwinOnEveryInstructionSet) {
  int tried = 0;
  for (std::int64_t targets = hwy::SupportedTargets(); targets != 0; targets &= targets - 1) {
    const std::int64_t target = targets & -targets;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::GetChosenTarget().Update(target);
    expect_bits_of_the_slow_twin<float>();
    expect_bits_of_the_slow_twin<double>();
    ++tried;
    hwy::GetChosenTarget().DeInit();
  }
  EXPECT_GT(tried, 0);
}

}  // namespace
}  // namespace tessera::arrays
