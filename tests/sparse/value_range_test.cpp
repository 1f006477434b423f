#include "tessera/sparse/value_range.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/half.hpp"
#include "tessera/tests/support/message_of.hpp"

namespace tessera::sparse {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(ValueRange, EndsWhereValuesRoundToInfinity) {
  for (const DataType type : {DataType::Half, DataType::BFloat16}) {
    float least = type == DataType::Half ? 65000.0f : 0x1.FCp127f;
    while (with_type(type, [&]<class T>(T) { return std::isfinite(float(T(least))); })) {
      EXPECT_NO_THROW(check_range(std::vector<float>{1, least, -least}, type));
      least = type == DataType::Half ? least + 0.5f : least + 0x1p119f;
    }
    EXPECT_THROW(check_range(std::vector<float>{1, least}, type), Error);
    EXPECT_THROW(check_range(std::vector<float>{-least}, type), Error);
  }
  EXPECT_NO_THROW(
      check_range(std::vector<float>{std::numeric_limits<float>::max()}, DataType::Float));
}

TEST(ValueRange, NamesTheValueTheRangeAndARemedy) {
  const std::vector<float> values{1, 2, -70000};
  EXPECT_EQ(test::message_of([&] { check_range(values, DataType::Half); }),
            "weight 2 is -70000; half holds -65504 to 65504; scale the weights, or use the type "
            "float");
}

TEST(ValueRange, LetsInfinityAndNaNThrough) {
  const std::vector<float> values{kInfinity, -kInfinity, std::nanf("")};
  for (const DataType type : {DataType::Half, DataType::BFloat16, DataType::Float})
    EXPECT_NO_THROW(check_range(values, type));
}

}  // namespace
}  // namespace tessera::sparse
