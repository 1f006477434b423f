#include "tessera/arrays/mapped/slice.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tessera/arrays/mapped/buffer.hpp"
#include "tessera/tests/sparse/drawing.hpp"

namespace tessera::arrays {
namespace {

using test::raises;
using End = std::optional<std::int64_t>;

// Nothing, then -length - 10 up to length + 9.
std::vector<End> ends(std::int64_t length) {
  std::vector<End> result = {std::nullopt};
  for (std::int64_t i = -length - 10; i < length + 10; ++i) result.push_back(i);
  return result;
}

// FNV-1a over the number and the indices of what each slice takes.
struct Hash {
  std::uint64_t value = 0xcbf29ce484222325;
  void add(std::int64_t v) { value = (value ^ std::uint64_t(v)) * 0x100000001b3; }
};

// The truth was made by Python 3.11 itself: list(range(d))[start:stop:step] for every start, stop
// and step but 0, in the order of ends(), hashed in the same way.
TEST(Slice, DM_11_EverySmallSliceIsPythons) {
  constexpr std::uint64_t kPython[] = {0x7c9cb15fd02c340d, 0x12ab317c4673be2e, 0xd92db6abae05c8aa,
                                       0x94cd9059bac14a47, 0x1bd335e9260985ad, 0xa16fd7d534699d57,
                                       0x8ed8629dc507d562, 0xefe1f39eaebb071c, 0x5b75d21a12377d87};
  for (std::int64_t d = 1; d <= 9; ++d) {
    Hash hash;
    for (const End& start : ends(d))
      for (const End& stop : ends(d))
        for (const End& step : ends(d)) {
          if (step == 0) continue;
          const Slice slice{start, stop, step};
          const Progression taken = slice.reduced(d);
          hash.add(taken.count);
          EXPECT_EQ(slice.items(d), taken.count);
          for (std::int64_t i = 0; i < taken.count; ++i) hash.add(taken[i]);
        }
    EXPECT_EQ(hash.value, kPython[d - 1]) << "length " << d;
  }
}

TEST(Slice, TakesTheLargestNumbers) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ((Slice{kLeast, kMost, kMost}.reduced(5)), (Progression{0, kMost, 1}));
  EXPECT_EQ((Slice{kMost, kLeast, kLeast}.reduced(5)), (Progression{4, -kMost, 1}));
  EXPECT_EQ((Slice{}.reduced(kMost).count), kMost);
  EXPECT_EQ((Slice{{}, {}, -1}.reduced(0).count), 0);
}

TEST(Slice, RefusesToStandStill) {
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"step 0"}, [] { Slice{0, 1, 0}.reduced(3); }));
}

TEST(Buffer, DM_12_APartReachesBeforeItself) {
  const Buffer<float> whole(std::vector<float>{1, 2, 3, 4, 5, 6});
  EXPECT_EQ(whole.part(2, 5).at(-1), 2);
  EXPECT_EQ(whole.part(2, 4).part(-2, 3).values(), (std::vector<float>{1, 2, 3, 4, 5}));
  Buffer<float> part = whole.part(2, 5);
  part.put(0, 9);
  EXPECT_EQ(whole.at(2), 9);
}

TEST(Buffer, RefusesWhatIsNotShared) {
  const Buffer<float> part = Buffer<float>(std::vector<float>{1, 2, 3, 4}).part(1, 3);
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"-2", "-1 to 2"}, [&] { part.at(-2); }));
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"index 3"}, [&] { part.at(3); }));
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"[-2, 1)"}, [&] { part.part(-2, 1); }));
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"[1, 0)"}, [&] { part.part(1, 0); }));
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"[0, 4)"}, [&] { part.part(0, 4); }));
}

}  // namespace
}  // namespace tessera::arrays
