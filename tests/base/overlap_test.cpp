#include "tessera/base/overlap.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/tests/support/message_of.hpp"

namespace tessera {
namespace {

// Returns how many elements of the matrix use each byte, counted one by one.
std::map<std::int64_t, int> bytes_of(const Footprint& f) {
  std::map<std::int64_t, int> uses;
  for (std::int64_t r = 0; r < f.rows; ++r)
    for (std::int64_t c = 0; c < f.cols; ++c)
      for (std::int64_t i = 0; i < f.size; ++i)
        ++uses[std::int64_t(f.data + r * f.row_step + c * f.col_step - f.data) + i];
  return uses;
}

bool share_a_byte(const Footprint& a, const Footprint& b) {
  const auto of_b = bytes_of(b);
  for (const auto& [byte, uses] : bytes_of(a))
    if (of_b.count(byte + (a.data - b.data)) > 0) return true;
  return false;
}

bool uses_a_byte_twice(const Footprint& f) {
  for (const auto& [byte, uses] : bytes_of(f))
    if (uses > 1) return true;
  return false;
}

// A matrix anywhere in the middle of `memory`, with any strides, also negative ones.
Footprint any_footprint(const std::vector<std::byte>& memory, Random& random) {
  const auto below = [&](std::int64_t n) { return std::int64_t(random.below(std::uint64_t(n))); };
  const std::int64_t size = std::array{1, 2, 4}[std::size_t(below(3))];
  return {"m",      memory.data() + 400 + below(200), below(6),
          below(6), size * (below(25) - 12),          below(2) == 0 ? size : size * (below(9) - 4),
          size};
}

TEST(Overlap, IsFoundExactlyWhereAByteIsShared) {
  const std::vector<std::byte> memory(1000);
  Random random(7);
  int shared = 0, apart = 0, twice = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Footprint a = any_footprint(memory, random), b = any_footprint(memory, random);
    const bool expected = share_a_byte(a, b);
    ASSERT_EQ(share_bytes(a, b), expected) << i;
    ASSERT_EQ(share_bytes(b, a), expected) << i;
    ASSERT_EQ(overlaps_itself(a), uses_a_byte_twice(a)) << i;
    ++(expected ? shared : apart);
    twice += uses_a_byte_twice(a);
  }
  EXPECT_GT(shared, 1000);
  EXPECT_GT(apart, 1000);
  EXPECT_GT(twice, 1000);
}

TEST(Overlap, IsNotSeenInColumnsOfOneMatrix) {
  Matrix<float> both(100, 24);
  const auto left = both.view().sub({0, 100}, {0, 12}), right = both.view().sub({0, 100}, {12, 24});
  EXPECT_FALSE(share_bytes(footprint("left", left), footprint("right", right)));
  const auto wider = both.view().sub({0, 100}, {11, 24});
  EXPECT_TRUE(share_bytes(footprint("left", left), footprint("wider", wider)));
}

TEST(Overlap, IsRefusedWithTheNamesOfBoth) {
  std::vector<float> values(10);
  const Footprint result = footprint("q", std::span(values).first(6));
  const std::array operands{footprint("r", std::span(values).subspan(6)),
                            footprint("s", std::span(values).subspan(5))};
  EXPECT_NO_THROW(check_memory("forward", result, std::span(operands).first(1)));
  try {
    check_memory("forward", result, operands);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
    EXPECT_STREQ(e.what(),
                 "forward: the result q shares memory with the operand s; results need memory of "
                 "their own");
  }
  const MatrixView<float> repeated{values.data(), 4, 5, 0, 1};
  EXPECT_THROW(check_memory("forward", footprint("q", repeated), {}), Error);
}

TEST(Overlap, NeedsMemoryForEveryElement) {
  std::vector<float> values(6);
  const Footprint some = footprint("q", std::span(values));
  const Footprint none = footprint("s", MatrixView<float>{nullptr, 2, 3, 3, 1});
  EXPECT_EQ(test::refusal([&] { check_memory("forward", some, std::array{none}); }),
            "forward: s has 2 x 3 elements at a null pointer; pass a view of memory");
  EXPECT_NE(test::refusal([&] { check_memory("forward", none, {}); }), "");
  EXPECT_NO_THROW(check_memory("forward", footprint("q", MatrixView<float>{nullptr, 2, 0}),
                               std::array{footprint("s", MatrixView<float>{})}));
}

}  // namespace
}  // namespace tessera
