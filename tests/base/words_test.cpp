// The small words everybody uses: units and ids, errors, data types.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <compare>
#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>

#include "tessera/base/data_type.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/units.hpp"

namespace tessera {
namespace {

template <class A, class B>
concept CanAdd = requires(A a, B b) { a + b; };
template <class A, class B>
concept CanCompare = requires(A a, B b) { a == b; };

TEST(Quantity, CountsLikeANumber) {
  EXPECT_EQ(Cycles{3} + Cycles{4}, Cycles{7});
  EXPECT_EQ(Cycles{3} - Cycles{4}, Cycles{-1});
  EXPECT_EQ(Cycles{3} * 2, Cycles{6});
  EXPECT_EQ(2 * Cycles{3}, Cycles{6});
  EXPECT_LT(Bytes{1}, Bytes{2});
  EXPECT_EQ(Bytes{}.value, 0);
  Words words{5};
  words += Words{2};
  words -= Words{1};
  EXPECT_EQ(words, Words{6});
}

TEST(Quantity, DoesNotMixWithOtherUnitsOrPlainNumbers) {
  static_assert(CanAdd<Cycles, Cycles> && !CanAdd<Cycles, Bytes> && !CanAdd<Cycles, int>);
  static_assert(!CanCompare<Cycles, Words> && !CanCompare<Cycles, std::int64_t>);
  static_assert(!std::is_convertible_v<std::int64_t, Cycles>);
  static_assert(!std::is_convertible_v<Cycles, std::int64_t>);
}

TEST(Id, IsOrderedAndHasNoArithmetic) {
  using OtherId = Id<struct OtherKind>;
  EXPECT_LT(TileId(3), TileId(4));
  EXPECT_EQ(TileId(2147483647).value, 2147483647);
  static_assert(!CanAdd<TileId, TileId> && !CanCompare<TileId, OtherId>);
  static_assert(!std::is_convertible_v<int, TileId> && !std::is_convertible_v<TileId, int>);
}

TEST(Error, CarriesACodeAndAMessage) {
  const Error e(ErrorCode::BadInput, "what and where");
  EXPECT_EQ(e.code(), ErrorCode::BadInput);
  EXPECT_STREQ(e.what(), "what and where");
}

TEST(Error, EveryCodeHasItsOwnName) {
  EXPECT_EQ(to_string(ErrorCode::InvalidArgument), "invalid argument");
  EXPECT_EQ(to_string(ErrorCode::BadInput), "bad input");
  EXPECT_EQ(to_string(ErrorCode::LimitExceeded), "limit exceeded");
  EXPECT_EQ(to_string(ErrorCode::NoSolution), "no solution");
  EXPECT_EQ(to_string(ErrorCode::CheckFailed), "check failed");
  EXPECT_EQ(to_string(ErrorCode::Internal), "internal error");
}

TEST(Assert, ThrowsInEveryBuildAndNamesConditionAndPlace) {
  EXPECT_NO_THROW(TESSERA_ASSERT(1 + 1 == 2));
  try {
    TESSERA_ASSERT(1 + 1 == 3);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::Internal);
    EXPECT_THAT(e.what(), testing::HasSubstr("1 + 1 == 3"));
    EXPECT_THAT(e.what(), testing::HasSubstr("words_test.cpp:"));
  }
}

TEST(DataType, ComesBackFromItsName) {
  for (const DataType type : {DataType::Float, DataType::Half, DataType::BFloat16})
    EXPECT_EQ(parse_data_type(to_string(type)), type);
  EXPECT_EQ(to_string(DataType::Half), "half");
  EXPECT_EQ(to_string(DataType::BFloat16), "bfloat16");
}

TEST(DataType, RefusesOtherNamesAndListsTheLegalOnes) {
  for (const char* name : {"", "Half", "float ", "double"}) {
    try {
      parse_data_type(name);
      ADD_FAILURE() << name;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
      EXPECT_THAT(e.what(), testing::HasSubstr("it is float, half or bfloat16"));
    }
  }
}

TEST(DataType, KnowsItsBytesAndItsCppType) {
  EXPECT_EQ(bytes_of(DataType::Float), std::int64_t{sizeof(float)});
  EXPECT_EQ(bytes_of(DataType::Half), std::int64_t{sizeof(Half)});
  static_assert(data_type_of<float>() == DataType::Float);
  EXPECT_EQ(bytes_of(DataType::BFloat16), std::int64_t{sizeof(BFloat16)});
  static_assert(data_type_of<Half>() == DataType::Half);
  static_assert(data_type_of<BFloat16>() == DataType::BFloat16);
}

TEST(DataType, LeadsToItsCppType) {
  for (const DataType type : {DataType::Float, DataType::Half, DataType::BFloat16})
    EXPECT_EQ(with_type(type, [](auto zero) { return data_type_of<decltype(zero)>(); }), type);
}

// 1 + unit lies half way between two numbers: it rounds to 1, what is larger rounds up.
TEST(DataType, KnowsHowItRounds) {
  for (const DataType type : {DataType::Float, DataType::Half, DataType::BFloat16})
    with_type(type, [&](auto zero) {
      using T = decltype(zero);
      const auto [unit, smallest] = precision_of(type);
      EXPECT_EQ(double(float(T(float(1 + 2 * unit)))), 1 + 2 * unit);
      EXPECT_EQ(float(T(float(1 + unit))), 1.0f);
      EXPECT_EQ(double(float(T(float(smallest)))), smallest);
      EXPECT_EQ(float(T(float(smallest / 2))), 0.0f);
    });
}

}  // namespace
}  // namespace tessera
