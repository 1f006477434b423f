// Sums over ranks have the same bits for every number of ranks.

#include "tessera/distributed/tree_sum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/distributed/thread_ranks.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/tests/support/other_float_mode.hpp"

namespace tessera::distributed {
namespace {

constexpr int kRanks[] = {1, 2, 3, 4, 5, 8, 17};

std::vector<std::vector<float>> random_leaves(std::int64_t leaves, std::int64_t length) {
  Random random(3);
  const std::vector<float> zeros(static_cast<std::size_t>(length));
  std::vector<std::vector<float>> lists(static_cast<std::size_t>(leaves), zeros);
  for (auto& list : lists)
    for (float& v : list) v = float(random.unit() - 0.5) * float(1 << random.below(20));
  return lists;
}

// The tree written down as a recursion over its shape.
float tree(const std::vector<std::vector<float>>& leaves, std::size_t i, std::int64_t first,
           std::int64_t size) {
  if (size == 1) return leaves[std::size_t(first)][i];
  std::int64_t half = 1;
  while (2 * half < size) half *= 2;
  return tree(leaves, i, first, half) + tree(leaves, i, first + half, size - half);
}

void add_up(Communicator& ranks, const std::vector<std::vector<float>>& leaves,
            std::span<float> sum) {
  const auto write_leaf = [&](std::int64_t leaf, std::span<float> values) {
    std::ranges::copy(leaves[std::size_t(leaf)], values.begin());
  };
  SumMemory memory;
  tree_sum(ranks, std::ssize(leaves), sum, write_leaf, memory);
  const std::vector<float> first(sum.begin(), sum.end());
  std::ranges::fill(sum, 0.0f);
  tree_sum(ranks, std::ssize(leaves), sum, write_leaf, memory);  // in memory that was used
  EXPECT_TRUE(std::ranges::equal(sum, first));
}

TEST(TreeSum, IsTheSumOfTheTreeForEveryNumberOfRanksAndLeaves) {
  for (const std::int64_t count : {1, 2, 3, 6, 7, 16})
    for (const std::int64_t length : {0, 1, 5, 64}) {
      const auto leaves = random_leaves(count, length);
      std::vector<float> expected;
      for (std::size_t i = 0; i < std::size_t(length); ++i)
        expected.push_back(tree(leaves, i, 0, count));
      for (const int ranks : kRanks)
        run_ranks(ranks, [&](Communicator& all) {
          std::vector<float> got(std::size_t(length), -1);
          add_up(all, leaves, got);
          EXPECT_EQ(got, expected) << count << " leaves, " << ranks << " ranks";
        });
    }
}

// A caller may round up and take denormal numbers for 0.
TEST(TreeSum, DoesNotDependOnTheFloatingPointModeOfTheCaller) {
  auto leaves = random_leaves(6, 64);
  for (auto& list : leaves)
    for (std::size_t i = 0; i < list.size(); i += 2) list[i] *= 1e-42f;
  const auto sum_in_mode = [&](bool other) {
    std::vector<float> got(64);
    run_ranks(2, [&](Communicator& all) {
      const std::optional<test::OtherFloatMode> mode =
          other ? std::optional<test::OtherFloatMode>(std::in_place) : std::nullopt;
      std::vector<float> own(64);
      add_up(all, leaves, own);
      if (all.rank() == 0) got = own;
    });
    return got;
  };
  EXPECT_EQ(sum_in_mode(true), sum_in_mode(false));
}

TEST(TreeSum, RefusesOtherNumbersOfLeaves) {
  for (const std::int64_t leaves : {0, 4097})
    EXPECT_NE(test::refusal([&] {
                SumMemory memory;
                run_ranks(1, [&](Communicator& ranks) { tree_sum(ranks, leaves, {}, {}, memory); });
              }).find("there must be 1 to 4096"),
              std::string::npos);
}

}  // namespace
}  // namespace tessera::distributed
