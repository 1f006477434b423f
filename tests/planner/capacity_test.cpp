#include "tessera/planner/internal/capacity.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/random.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/planner.hpp"

namespace tessera::planner {
namespace {

using internal::room_for_every_cell;
using internal::Scatter;

// P(more than n of `places` are filled), summed term by term from the far end.
double exact_tail(std::int64_t places, double density, std::int64_t n) {
  double tail = 0;
  for (std::int64_t k = places; k > n; --k) {
    double log_term = 0;
    for (std::int64_t i = 0; i < k; ++i)
      log_term += std::log(double(places - i) / double(i + 1) * density);
    tail += std::exp(log_term + double(places - k) * std::log1p(-density));
  }
  return tail;
}

TEST(Room, IsTheExactBinomialQuantileOrLittleMore) {
  for (const std::int64_t places : {1, 2, 7, 27, 100, 400})
    for (const double density : {0.001, 0.05, 0.3, 0.9})
      for (const std::int64_t cells : {1, 24, 1472})
        for (const double confidence : {0.5, 0.9, 0.999}) {
          SCOPED_TRACE(testing::Message() << places << " places, density " << density << ", "
                                          << cells << " cells, confidence " << confidence);
          const double allowed = (1 - confidence) / double(cells);
          std::int64_t exact = 0;
          while (exact < places && exact_tail(places, density, exact) > allowed) ++exact;
          const std::int64_t room = room_for_every_cell({places, density, cells, confidence});
          EXPECT_GE(room, std::min<std::int64_t>(exact, places));
          EXPECT_LE(room, exact + (allowed <= 0.1 ? 2 : 6));
          EXPECT_LE(room, places);
        }
}

TEST(Room, NeedsNothingForAnEmptyPatternAndAllForAFullOne) {
  EXPECT_EQ(room_for_every_cell({100, 0.0, 8, 0.9}), 0);
  EXPECT_EQ(room_for_every_cell({0, 0.5, 8, 0.9}), 0);
  EXPECT_EQ(room_for_every_cell({100, 1.0, 8, 0.9}), 100);
}

TEST(Room, KeepsItsPromiseOnRandomPatterns) {
  constexpr int kTrials = 400;
  constexpr std::int64_t kCells = 64, kPlaces = 96;
  const std::int64_t room = room_for_every_cell({kPlaces, 0.1, kCells, 0.9});
  Random random(3);
  int overflowed = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    bool over = false;
    for (std::int64_t cell = 0; cell < kCells; ++cell) {
      std::int64_t filled = 0;
      for (std::int64_t i = 0; i < kPlaces; ++i) filled += random.unit() < 0.1;
      over |= filled > room;
    }
    overflowed += over;
  }
  EXPECT_LE(overflowed, kTrials * 14 / 100) << "promised: one in ten";
  EXPECT_GE(overflowed, 1) << "room is far too large";
}

// Draws patterns and counts the items that the busiest hand of the fullest cell gets.
double drawn_hand(const Scatter& s, std::int64_t hands, int trials) {
  Random random(9);
  double sum = 0;
  for (int trial = 0; trial < trials; ++trial) {
    std::int64_t fullest = 0;
    for (std::int64_t cell = 0; cell < s.cells; ++cell) {
      std::int64_t filled = 0;
      for (std::int64_t i = 0; i < s.places; ++i) filled += random.unit() < s.density;
      fullest = std::max(fullest, filled);
    }
    sum += double((fullest * s.size + hands - 1) / hands);
  }
  return sum / trials;
}

TEST(Hands, GetTheirMeanShareOfTheFullestCellInWholeItems) {
  for (const Scatter& s : {Scatter{.places = 12, .density = 0.02, .cells = 40},
                           Scatter{.places = 16, .density = 0.2, .cells = 90},
                           Scatter{.places = 60, .density = 0.15, .cells = 64},
                           Scatter{.places = 24, .density = 0.1, .cells = 24, .size = 4},
                           Scatter{.places = 900, .density = 0.3, .cells = 8}})
    for (const std::int64_t hands : {1, 2, 4, 6, 16, 96}) {
      const double mean = internal::mean_hand_of_fullest(s, hands);
      EXPECT_NEAR(mean, drawn_hand(s, hands, 400), 0.04 + 0.06 * mean)
          << s.places << " places, " << s.cells << " cells, " << hands << " hands";
    }
}

TEST(Hands, GetWhatACellHasIfItsBlocksAreKnown) {
  EXPECT_EQ(internal::mean_hand_of_fullest({.places = 40, .density = 1, .cells = 9}, 6), 7);
  EXPECT_EQ(internal::mean_hand_of_fullest({.places = 40, .density = 0.3, .cells = 1}, 6), 2);
  EXPECT_EQ(internal::mean_hand_of_fullest({.places = 40, .density = 0, .cells = 9}, 6), 0);
}

TEST(Room, ASkewedPatternGetsTheRoomOfItsFullestCell) {
  Problem problem{.size = {1, 256, 256, 16}, .density = 0.05};
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 16;
  Options options;
  options.constraints = {4, 4, 1, {}, false};
  PatternStats even{{1, 1}, std::vector<std::int32_t>(256, 13), std::vector<std::int32_t>(256, 13)};
  PatternStats skewed = even;
  for (std::size_t i = 0; i < 256; ++i)
    skewed.row_counts[i] = skewed.col_counts[i] = i < 64 ? 37 : 5;
  const auto room = [&](const PatternStats& stats) {
    return plan_or_throw(problem, machine, options, &stats).nonzeros_per_bucket;
  };
  EXPECT_LT(room(even), 64 * 64 * 0.05 * 1.5);
  // 64 rows of 37 out of 3328 in all, and as many columns: 64 * 37 * 64 * 37 / 3328 = 1685.
  EXPECT_GE(room(skewed), 1685);
  options.bucket_confidence = 0;
  EXPECT_LT(room(skewed), 64 * 64 * 0.05 * 1.5);
}

}  // namespace
}  // namespace tessera::planner
