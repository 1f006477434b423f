#include "tessera/codelets/best_places.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tessera/base/int_math.hpp"
#include "tessera/base/random.hpp"
#include "tessera/codelets/cost/selection_cycles.hpp"
#include "tessera/codelets/find_large.hpp"
#include "tessera/codelets/internal/fast/simd_targets.hpp"

namespace tessera::codelets {
namespace {

constexpr std::uint64_t kSeed = 11;

// A part with its memory. Gradients are small whole numbers, so many scores are equal.
struct Case {
  std::int64_t rows, columns;
  BlockShape block;
  BlockScore score = BlockScore::Sum;
  std::vector<float> gradients = {};
  std::vector<std::uint32_t> taken = {};

  void draw(Random& random) {
    gradients.resize(std::size_t(rows * columns));
    for (float& g : gradients) g = float(random.below(9)) - 4;
    taken.assign(std::size_t(ceil_div(blocks(), 32)), 0);
    for (std::int64_t b = 0; b < blocks(); ++b)
      if (random.below(3) == 0) taken[std::size_t(b / 32)] |= 1U << (b % 32);
  }
  std::int64_t block_columns() const { return ceil_div(columns, block.cols); }
  std::int64_t blocks() const { return ceil_div(rows, block.rows) * block_columns(); }
  GradientPart part() const {
    return {gradients.data(), rows, columns, block, score, 5, 7, 2000, taken};
  }

  // The scores in double of all free blocks, best first.
  std::vector<ScoredPlace> all_free() const {
    std::vector<ScoredPlace> all;
    for (std::int64_t b = 0; b < blocks(); ++b) {
      if ((taken[std::size_t(b / 32)] >> (b % 32) & 1) != 0) continue;
      const std::int64_t r0 = b / block_columns() * block.rows,
                         c0 = b % block_columns() * block.cols;
      double sum = 0, most = 0;
      for (std::int64_t r = r0; r < std::min(rows, r0 + block.rows); ++r)
        for (std::int64_t c = c0; c < std::min(columns, c0 + block.cols); ++c) {
          const double size = std::abs(double(gradients[std::size_t(r * columns + c)]));
          sum += size;
          most = std::max(most, size);
        }
      all.push_back({float(score == BlockScore::Sum ? sum : most),
                     std::uint32_t((5 + b / block_columns()) * 2000 + 7 + b % block_columns())});
    }
    std::sort(all.begin(), all.end(), is_better);
    return all;
  }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const BlockScore score : {BlockScore::Sum, BlockScore::Max})
    for (const BlockShape block :
         {BlockShape{1, 1}, BlockShape{4, 4}, BlockShape{2, 16}, BlockShape{3, 1050}})
      for (const std::int64_t columns : {1, 15, 16, 35, 1100})
        all.push_back({9, columns, block, score});
  Random random(kSeed);
  for (Case& c : all) c.draw(random);
  return all;
}

struct Kept {
  std::vector<ScoredPlace> memory;
  BestList list;
  SelectionWork work;

  explicit Kept(std::int64_t keep) : memory(std::size_t(2 * keep)) {
    list = {.places = memory.data(), .keep = keep};
  }
  std::vector<ScoredPlace> places() {
    work += finish_best(list);
    return {memory.begin(), memory.begin() + list.count};
  }
};

TEST(BestPlaces, AreThoseOfASortOfAllBlocksForEveryListSize) {
  for (const Case& c : cases())
    for (const std::int64_t keep : {1, 2, 7, 40, 5000}) {
      Kept kept(keep);
      kept.work += add_best_reference(c.part(), kept.list);
      std::vector<ScoredPlace> wanted = c.all_free();
      wanted.resize(std::min(wanted.size(), std::size_t(keep)));
      EXPECT_EQ(kept.places(), wanted) << c.columns << " " << keep << " seed " << kSeed;
    }
}

TEST(BestPlaces, HaveTheBitsAndWorkOfTheReferenceOnEveryTarget) {
  for (const auto& target : internal::simd_targets()) {
    if (!target.runs_here) continue;
    const internal::UseSimdTarget use(target);
    for (const Case& c : cases())
      for (const std::int64_t keep : {1, 7, 40}) {
        Kept kept(keep), reference(keep);
        for (int twice = 0; twice < 2; ++twice) {
          kept.work += add_best(c.part(), kept.list);
          reference.work += add_best_reference(c.part(), reference.list);
        }
        EXPECT_EQ(kept.places(), reference.places()) << target.name;
        EXPECT_EQ(kept.work, reference.work) << target.name << " " << c.columns;
      }
  }
}

TEST(BestPlaces, GoOnAfterAPlaceUntilAllHaveBeenSeen) {
  for (const Case& c : cases()) {
    std::vector<ScoredPlace> all;
    for (;;) {
      Kept kept(30);
      const ScoredPlace last = all.empty() ? ScoredPlace{} : all.back();
      if (!all.empty()) kept.list.after = &last;
      add_best(c.part(), kept.list);
      const std::vector<ScoredPlace> next = kept.places();
      all.insert(all.end(), next.begin(), next.end());
      if (next.size() < 30) break;
    }
    EXPECT_EQ(all, c.all_free());
  }
}

TEST(BestPlaces, LookAtNothingBelowTheThreshold) {
  Case c{4, 40, {}};
  Random random(kSeed);
  c.draw(random);
  Kept kept(100);
  kept.list.threshold = 4;
  add_best(c.part(), kept.list);
  for (const ScoredPlace& place : kept.places()) EXPECT_EQ(place.score, 4);
}

TEST(BestPlaces, PutWhatIsNotFiniteFirst) {
  for (const BlockScore score : {BlockScore::Sum, BlockScore::Max})
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()})
      for (const BlockShape block : {BlockShape{1, 1}, BlockShape{2, 2}}) {
        Case c{4, 40, block, score};
        Random random(kSeed);
        c.draw(random);
        std::fill(c.taken.begin(), c.taken.end(), 0);
        c.gradients[std::size_t(2 * c.columns)] = bad;  // the first element of a block
        Kept kept(3), reference(3);
        add_best(c.part(), kept.list);
        add_best_reference(c.part(), reference.list);
        const std::vector<ScoredPlace> best = kept.places();
        EXPECT_EQ(best, reference.places());
        EXPECT_EQ(best[0].score, std::numeric_limits<float>::infinity());
        EXPECT_EQ(best[0].place, std::uint32_t((5 + 2 / block.rows) * 2000 + 7));
      }
}

TEST(SelectionCycles, AreThoseOfTheInstructionsCountedByHand) {
  // 6 workers, 120 elements: 60 vectors, 10 a worker; no joins; 10 tests; 12 added, 2 a worker.
  EXPECT_EQ(selection_cycles({120, 120, 30}, {.added = 12}, 6),
            Cycles(6 * (15 + 10 * 2 + 10 * 2 + 2 * 8)));
  // A selection from 60 places, 10 a worker: eight passes of 6 and a move of 5, and 8 times 16
  // counters of each worker at two cycles.
  EXPECT_EQ(selection_cycles({0, 0, 30}, {.selections = 1}, 6),
            Cycles(6 * (15 + 10 * (8 * 6 + 5)) + 8 * 16 * 6 * 2));
  // Blocks of 4 x 4: 64 elements in 4 blocks are joined in 60 additions.
  EXPECT_EQ(selection_cycles({64, 4, 30}, {}, 1), Cycles(15 + 32 * 2 + 30 + 2 * 2));
  EXPECT_EQ(selection_cycles({}, {}, 6), Cycles(0));
}

TEST(SelectionCycles, ExpectTheWorkOfRandomScores) {
  Random random(kSeed);
  for (const std::int64_t blocks : {1000, 20000})
    for (const std::int64_t keep : {20, 300, 5000}) {
      Case c{1, blocks, {}};
      c.gradients.resize(std::size_t(blocks));
      for (float& g : c.gradients) g = float(random.unit());
      c.taken.assign(std::size_t(ceil_div(blocks, 32)), 0);
      Kept kept(keep);
      kept.work += add_best(c.part(), kept.list);
      kept.places();
      const SelectionWork expected = expected_selection(blocks, keep);
      EXPECT_NEAR(double(kept.work.added), double(expected.added), 0.15 * double(expected.added))
          << blocks << " " << keep;
      EXPECT_NEAR(double(kept.work.selections), double(expected.selections), 2);
    }
}

TEST(SelectionCycles, AListTakesTwiceItsPlaces) { EXPECT_EQ(best_list_bytes(30), 480); }

TEST(FindLarge, ListsTheMagnitudesThatAreNotBelowTheThreshold) {
  for (const auto& target : internal::simd_targets()) {
    if (!target.runs_here) continue;
    SCOPED_TRACE(target.name);
    const internal::UseSimdTarget use(target);
    Random random(kSeed);
    for (const std::int64_t count : {0, 1, 15, 16, 17, 64, 100})
      for (const float threshold : {0.0f, 2.0f, 4.0f, 5.0f}) {
        std::vector<float> values;
        for (std::int64_t i = 0; i < count; ++i) values.push_back(float(random.below(9)) - 4);
        if (count > 3) values[3] = std::nanf("");
        if (count > 8) values[8] = -std::numeric_limits<float>::infinity();
        std::vector<std::uint32_t> wanted;
        for (std::int64_t i = 0; i < count; ++i)
          if (!(std::abs(values[std::size_t(i)]) < threshold)) wanted.push_back(std::uint32_t(i));
        std::vector<std::uint32_t> found(std::size_t(count + kLargeSlack));
        found.resize(std::size_t(find_large(values, threshold, found)));
        EXPECT_EQ(found, wanted) << count << " values, threshold " << threshold;
      }
  }
}

}  // namespace
}  // namespace tessera::codelets
