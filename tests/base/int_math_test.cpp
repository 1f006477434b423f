#include "tessera/base/int_math.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "tessera/base/dims.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/even_part.hpp"

namespace tessera {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();

// The message of the Error{LimitExceeded} that `run` must throw.
template <class Run>
std::string limit_message(Run run) {
  try {
    run();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::LimitExceeded);
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(CeilDiv, IsTheSmallestQuotientThatCovers) {
  for (std::int64_t n = 0; n <= 60; ++n)
    for (std::int64_t d = 1; d <= 13; ++d) {
      std::int64_t q = 0;
      while (q * d < n) ++q;
      EXPECT_EQ(ceil_div(n, d), q) << n << " / " << d;
    }
}

TEST(CeilDiv, DoesNotOverflowAtTheLargestNumbers) {
  EXPECT_EQ(ceil_div(kMax, 1), kMax);
  EXPECT_EQ(ceil_div(kMax, 2), kMax / 2 + 1);
  EXPECT_EQ(ceil_div(kMax, kMax), 1);
  EXPECT_EQ(ceil_div(kMax - 1, kMax), 1);
  EXPECT_EQ(ceil_div(0, kMax), 0);
}

TEST(RoundUp, IsTheNextMultiple) {
  EXPECT_EQ(round_up(0, 8), 0);
  EXPECT_EQ(round_up(7, 8), 8);
  EXPECT_EQ(round_up(8, 8), 8);
  EXPECT_EQ(round_up(9, 8), 16);
  EXPECT_EQ(round_up(kMax, 1), kMax);
}

TEST(CheckedMaths, GivesTheResultUpToTheEdge) {
  EXPECT_EQ(checked_mul(kMax, 1, "n"), kMax);
  EXPECT_EQ(checked_mul(kMin, 1, "n"), kMin);
  EXPECT_EQ(checked_mul(std::int64_t{1} << 31, std::int64_t{1} << 31, "n"), std::int64_t{1} << 62);
}

TEST(CheckedMaths, RefusesOneBeyondTheEdgeAndNamesIt) {
  EXPECT_EQ(limit_message([] { checked_mul(4611686018427387904, 2, "bucket bytes"); }),
            "bucket bytes: 4611686018427387904 * 2 does not fit in 64 bits");
  limit_message([] { checked_mul(kMin, -1, "n"); });
}

TEST(CheckedMaths, TakesExactlyTheNonNegative32BitNumbers) {
  EXPECT_EQ(checked_int32(0, "n"), 0);
  EXPECT_EQ(checked_int32(2147483647, "n"), 2147483647);
  EXPECT_EQ(limit_message([] { checked_int32(2147483648, "columns"); }),
            "columns is 2147483648; it must be in 0..2147483647 (32-bit index)");
  limit_message([] { checked_int32(-1, "n"); });
  limit_message([] { checked_int32(kMax, "n"); });
}

TEST(Dims, WorksElementByElement) {
  EXPECT_EQ(ceil_div(Dims{1, 10, 7, 4}, Dims{1, 3, 7, 8}), (Dims{1, 4, 1, 1}));
  EXPECT_EQ((Dims{1, 2, 3, 4} * Dims{5, 6, 7, 8}), (Dims{5, 12, 21, 32}));
  EXPECT_EQ((Dims{2, 3, 5, 7}.product()), 210);
  EXPECT_EQ(Dims{}.product(), 1);
  EXPECT_NE((Dims{1, 2, 3, 4}), (Dims{1, 2, 3, 5}));
  EXPECT_EQ(to_string(Dims{1, 86, 8, 2}), "g1 x86 y8 z2");
}

TEST(ShareOf, GivesTheExampleOfItsComment) {
  EXPECT_EQ(share_of(10, 1, 4, 3), (Range{9, 10}));
  EXPECT_EQ(share_of(10, 1, 4, 0), (Range{0, 3}));
}

// Shares follow each other, cover all, start on grains, and only the last non-empty one is shorter.
TEST(ShareOf, CoversEverySmallSizeWithoutGapOrOverlap) {
  for (std::int64_t size = 0; size <= 40; ++size)
    for (const std::int64_t grain : {1, 2, 3, 8, 41})
      for (const std::int64_t parts : {1, 2, 3, 7, 41, 50}) {
        SCOPED_TRACE(testing::Message() << size << " grain " << grain << " parts " << parts);
        const std::int64_t whole = share_of(size, grain, parts, 0).size();
        std::int64_t next = 0;
        for (std::int64_t i = 0; i < parts; ++i) {
          const Range share = share_of(size, grain, parts, i);
          ASSERT_EQ(share.begin, next);
          ASSERT_GE(share.size(), 0);
          ASSERT_TRUE(share.begin % grain == 0 || share.begin == size);
          ASSERT_TRUE(share.size() == whole || share.end == size);
          next = share.end;
        }
        ASSERT_EQ(next, size);
      }
}

TEST(ShareOf, IsEmptyBeyondTheEnd) {
  EXPECT_EQ(share_of(9, 1, 5, 4), (Range{8, 9}));
  EXPECT_EQ(share_of(8, 1, 5, 4), (Range{8, 8}));
  EXPECT_EQ(share_of(4, 8, 2, 1), (Range{4, 4}));
  EXPECT_EQ(share_of(0, 1, 3, 2), (Range{0, 0}));
}

TEST(EvenPart, JoinsToTheWholeAndDiffersByOneAtMost) {
  EXPECT_EQ(even_part(10, 4, 1), (Range{2, 5}));
  for (const std::int64_t size : {0, 1, 7, 12})
    for (const std::int64_t parts : {1, 3, 4, 9}) {
      std::int64_t end = 0;
      for (std::int64_t i = 0; i < parts; ++i) {
        const Range part = even_part(size, parts, i);
        EXPECT_EQ(part.begin, end);
        EXPECT_GE(part.size(), size / parts);
        EXPECT_LE(part.size(), size / parts + 1);
        end = part.end;
      }
      EXPECT_EQ(end, size);
    }
}

}  // namespace
}  // namespace tessera
