// Drop, growth and carry on random patterns, against searches of a few lines.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "tessera/base/random_matrix.hpp"
#include "tessera/base/select.hpp"
#include "tessera/host/best_places.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/failing_allocations.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/train/rewire/carry.hpp"
#include "tessera/train/rewire/drop.hpp"
#include "tessera/train/rewire/internal/sample.hpp"
#include "tessera/train/rewire/method.hpp"

namespace tessera::train {
namespace {

using sparse::BlockAt;
using sparse::Csr;
using test::refusal;
using testing::AllOf;
using testing::HasSubstr;

Csr<float> weights_of(std::int64_t rows, std::int64_t cols, BlockShape block, double density,
                      int levels, std::uint64_t seed) {
  Csr<float> m = sparse::random_pattern(rows, cols, block, density, seed);
  Random random(seed);
  for (float& v : m.values) v = float(random.below(2 * levels + 1) - levels);
  return m;
}

std::set<BlockAt> places_of(const Csr<float>& m) {
  std::set<BlockAt> places;
  for (std::int32_t row = 0; row < m.block_rows(); ++row)
    for (std::int64_t i = m.row_begin[row]; i < m.row_begin[row + 1]; ++i)
      places.insert({row, m.col[std::size_t(i)]});
  return places;
}

// The same as largest_gradients, from the whole dense gradient and a sort.
std::vector<BlockAt> by_sorting(const Csr<float>& taken, std::span<const GradientBatch> batches,
                                std::int64_t k, BlockScore pool) {
  std::vector<std::pair<double, BlockAt>> all;
  const std::set<BlockAt> held = places_of(taken);
  const BlockShape b = taken.block;
  for (std::int32_t row = 0; row < taken.block_rows(); ++row)
    for (std::int32_t col = 0; col < taken.block_cols(); ++col) {
      if (held.contains({row, col})) continue;
      double score = 0;
      for (std::int64_t r = row * b.rows; r < (row + 1) * b.rows; ++r)
        for (std::int64_t c = col * b.cols; c < (col + 1) * b.cols; ++c) {
          double g = 0;
          for (const GradientBatch& batch : batches)
            for (std::int64_t z = 0; z < batch.s.cols; ++z) g += batch.q_grad(r, z) * batch.s(c, z);
          score = pool == BlockScore::Max ? std::max(score, std::abs(g)) : score + std::abs(g);
        }
      all.push_back({-score, {row, col}});
    }
  std::sort(all.begin(), all.end());
  std::vector<BlockAt> places;
  for (std::int64_t i = 0; i < k; ++i) places.push_back(all[std::size_t(i)].second);
  std::sort(places.begin(), places.end());
  return places;
}

Matrix<float> whole_numbers(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  Random random(seed);
  Matrix<float> m(rows, cols);
  for (float& v : m.elements()) v = float(random.below(7) - 3);
  return m;
}

TEST(LargestGradients, AreThoseOfASortedDenseGradient) {
  const std::vector<BlockShape> blocks = {{1, 1}, {4, 4}, {2, 3}};
  for (const BlockShape block : blocks)
    for (const std::int64_t z : {1, 5}) {
      SCOPED_TRACE(testing::Message() << block.rows << " x " << block.cols << ", z " << z);
      const std::int64_t rows = 9 * block.rows, cols = round_up(300, block.cols);
      const Csr<float> taken = weights_of(rows, cols, block, 0.2, 3, 1);
      const Matrix<float> q = whole_numbers(rows, z, 2), s = whole_numbers(cols, z, 3),
                          q2 = whole_numbers(rows, z + 1, 4), s2 = whole_numbers(cols, z + 1, 5);
      const std::vector<GradientBatch> batches = {{q.view(), s.view()}, {q2.view(), s2.view()}};
      for (const std::int64_t k :
           {std::int64_t(1), std::int64_t(7), free_places(taken) / 2, free_places(taken)})
        for (const BlockScore pool : {BlockScore::Sum, BlockScore::Max, BlockScore::Mean}) {
          const auto wanted = by_sorting(taken, batches, k, pool);
          for (const int threads : {1, 2, 3, 7}) {
            const auto executor = make_executor(ExecutorKind::Threads, threads);
            EXPECT_EQ(exact_gradients({taken, batches, k, pool}, *executor), wanted);
          }
          if (has_executor(ExecutorKind::Tbb)) {
            const auto executor = make_executor(ExecutorKind::Tbb, 2);
            EXPECT_EQ(exact_gradients({taken, batches, k, pool}, *executor), wanted);
          }
          // A sample of all free places is no sample.
          const auto one = make_executor(1);
          EXPECT_EQ(sampled_gradients({taken, batches, k, pool}, {free_places(taken), 9}, *one),
                    wanted);
        }
    }
}

// The places of a sample, row by row.
std::vector<BlockAt> sample_of(const Csr<float>& taken, double probability, std::uint64_t seed) {
  const internal::SampleRows rows(taken, probability, seed);
  const auto width = std::size_t(taken.block_cols());
  std::vector<char> is_taken(width);
  std::vector<std::int32_t> cols(width + 1);
  std::vector<BlockAt> places;
  for (std::int32_t row = 0; row < taken.block_rows(); ++row) {
    const std::size_t count = rows.draw(row, is_taken, cols);
    for (std::size_t i = 0; i < count; ++i) places.push_back({row, cols[i]});
    EXPECT_EQ(std::count(is_taken.begin(), is_taken.end(), 0), taken.block_cols());
  }
  return places;
}

// With as many columns as rows, the gradient is any matrix: q_grad is the identity.
TEST(LargestGradients, AreRightWhateverASampleOfThemPromises) {
  constexpr std::int64_t kSide = 420, kSample = 4096, kBest = 1000;
  const Csr<float> taken = weights_of(kSide, kSide, {}, 0.05, 3, 1);
  Matrix<float> q(kSide, kSide), plain = whole_numbers(kSide, kSide, 3);
  for (std::int64_t i = 0; i < kSide; ++i) q(i, i) = 1;
  // The places of the sample get far larger numbers, which descend.
  Matrix<float> misleading = plain;
  float next = 1e6f;
  for (const BlockAt at : sample_of(taken, double(kSample) / double(free_places(taken)), 1))
    misleading(at.col, at.row) = next--;
  const auto executor = make_executor(2);
  for (const Matrix<float>& s : {plain, misleading}) {
    const std::vector<GradientBatch> batches = {{q.view(), s.view()}};
    for (const std::int64_t k : {std::int64_t{1}, kBest, free_places(taken)})
      EXPECT_EQ(exact_gradients({taken, batches, k, BlockScore::Sum}, *executor),
                by_sorting(taken, batches, k, BlockScore::Sum));
  }
}

TEST(Growth, CountsOperandsThatEndInsideABlockAsZero) {
  const Csr<float> taken = weights_of(16, 32, {4, 4}, 0.2, 3, 1);
  // The same operands with and without rows of zeros; beyond them lie numbers that must not count.
  Matrix<float> q = whole_numbers(16, 4, 2), s = whole_numbers(32, 4, 3);
  Matrix<float> whole_q = q, whole_s = s;
  for (std::int64_t z = 0; z < 4; ++z) {
    for (const std::int64_t r : {14, 15}) q(r, z) = std::nanf(""), whole_q(r, z) = 0;
    for (const std::int64_t r : {30, 31}) s(r, z) = std::nanf(""), whole_s(r, z) = 0;
  }
  const GradientBatch cut{q.view().sub({0, 14}, {0, 4}), s.view().sub({0, 30}, {0, 4})},
      whole{whole_q.view(), whole_s.view()};
  const auto executor = make_executor(1);
  EXPECT_EQ(exact_gradients({taken, {&cut, 1}, 9, BlockScore::Sum}, *executor),
            exact_gradients({taken, {&whole, 1}, 9, BlockScore::Sum}, *executor));
  EXPECT_EQ(sampled_gradients({taken, {&cut, 1}, 9, BlockScore::Sum}, {20, 1}, *executor),
            sampled_gradients({taken, {&whole, 1}, 9, BlockScore::Sum}, {20, 1}, *executor));
}

TEST(Smallest, AreThoseOfAStableSort) {
  Random random(3);
  std::vector<float> scores;
  for (int i = 0; i < 500; ++i) scores.push_back(float(random.below(40)) * 0.37f);
  scores[7] = -0.0f;
  std::vector<std::int64_t> sorted(scores.size());
  std::iota(sorted.begin(), sorted.end(), 0);
  std::stable_sort(sorted.begin(), sorted.end(), [&](std::int64_t a, std::int64_t b) {
    return scores[std::size_t(a)] < scores[std::size_t(b)];
  });
  for (const std::int64_t k : {0, 1, 250, 499, 500}) {
    std::vector<std::int64_t> wanted(sorted.begin(), sorted.begin() + k);
    std::sort(wanted.begin(), wanted.end());
    EXPECT_EQ(tessera::smallest(500, k, [&](std::int64_t i) { return scores[std::size_t(i)]; }),
              wanted)
        << k;
  }
}

// So many candidates that they are counted; scores repeat in one case, and in the other only by
// chance.
TEST(BestPlaces, AreThoseOfASort) {
  constexpr std::int64_t kCount = 150'000, kBest = 40'000, kCols = 1000;
  for (const std::int64_t scores : {std::int64_t{1}, std::int64_t{50}, std::int64_t{1} << 40}) {
    Random random(7);
    std::vector<host::Candidate> all;
    for (std::int64_t i = 0; i < kCount; ++i)
      all.push_back({float(random.below(scores)) * 0.37f,
                     {std::int32_t(i / kCols), std::int32_t(i % kCols)}});
    host::BestPlaces best(kBest, kCols);
    for (std::int64_t i = 0; i < kCount; i += kCols)
      best.add(std::span(all).subspan(std::size_t(i), std::size_t(kCols)));
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return a.score > b.score; });
    std::vector<BlockAt> wanted;
    for (std::int64_t i = 0; i < kBest; ++i) wanted.push_back(all[std::size_t(i)].at);
    std::sort(wanted.begin(), wanted.end());
    EXPECT_TRUE(best.is_full());
    EXPECT_EQ(best.places(), wanted) << scores;
  }
}

TEST(SampledGradients, AreTheLargestOfTheirSample) {
  for (const BlockShape block : {BlockShape{}, BlockShape{2, 3}}) {
    const Csr<float> taken = weights_of(300, 120, block, 0.1, 3, 1);
    const Matrix<float> q = whole_numbers(300, 8, 2), s = whole_numbers(120, 8, 3);
    const Matrix<float> q2 = whole_numbers(300, 5, 4), s2 = whole_numbers(120, 5, 5);
    const std::vector<GradientBatch> batches = {{q.view(), s.view()}, {q2.view(), s2.view()}};
    const Csr<float> all =
        sparse::with_change(taken, {{}, random_places(taken, free_places(taken), 0)});
    constexpr std::int64_t kBest = 20, kSample = 60;
    const auto sample = sample_of(taken, double(kSample) / double(free_places(taken)), 5);
    const Csr<float> rest = sparse::with_change(all, {sample, {}});  // all but the sample
    for (const int threads : {1, 3}) {
      const auto executor = make_executor(ExecutorKind::Threads, threads);
      EXPECT_EQ(
          sampled_gradients({taken, batches, kBest, BlockScore::Sum}, {kSample, 5}, *executor),
          by_sorting(rest, batches, kBest, BlockScore::Sum));
    }
  }
}

TEST(SampledGradients, ComeFromALargerSampleIfTheirNumberNeedsOne) {
  const Csr<float> taken = weights_of(40, 50, {}, 0.1, 3, 1);
  const Matrix<float> q = whole_numbers(40, 8, 2), s = whole_numbers(50, 8, 3);
  const GradientBatch batch{q.view(), s.view()};
  const auto executor = make_executor(1);
  for (const std::int64_t k : {std::int64_t{1}, std::int64_t{2}, std::int64_t{900},
                               free_places(taken) - 1, free_places(taken)})
    EXPECT_EQ(
        std::ssize(sampled_gradients({taken, {&batch, 1}, k, BlockScore::Sum}, {1, 9}, *executor)),
        k);
}

TEST(SampleRows, TakeEachFreePlaceWithTheProbabilityAndNoOther) {
  const Csr<float> taken = weights_of(64, 100, {}, 0.1, 3, 1);
  for (const double probability : {0.0001, 0.03, 0.5, 0.97, 1.0}) {
    constexpr int kSamples = 400;
    Matrix<std::int32_t> times(64, 100);
    double count = 0, pairs = 0;
    for (int seed = 0; seed < kSamples; ++seed) {
      const std::vector<BlockAt> sample = sample_of(taken, probability, std::uint64_t(seed));
      EXPECT_TRUE(std::is_sorted(sample.begin(), sample.end()));
      count += double(sample.size());
      for (std::size_t i = 0; i < sample.size(); ++i) {
        ++times(sample[i].row, sample[i].col);
        pairs +=
            i > 0 && sample[i].row == sample[i - 1].row && sample[i].col == sample[i - 1].col + 1;
      }
    }
    double neighbours = 0;  // free places beside each other
    for (std::int32_t row = 0; row < 64; ++row) {
      const auto begin = taken.col.begin() + taken.row_begin[std::size_t(row)],
                 end = taken.col.begin() + taken.row_begin[std::size_t(row) + 1];
      for (std::int32_t col = 0; col < 100; ++col) {
        const bool is_taken = std::binary_search(begin, end, col);
        neighbours += col > 0 && !is_taken && !std::binary_search(begin, end, col - 1);
        // Six deviations of a binomial distribution.
        const double mean = is_taken ? 0 : kSamples * probability;
        EXPECT_NEAR(times(row, col), mean, is_taken ? 0 : 6 * std::sqrt(mean) + 1);
      }
    }
    const double mean = kSamples * probability * double(free_places(taken));
    EXPECT_NEAR(count, mean, 5 * std::sqrt(mean) + 1) << probability;
    const double both = kSamples * probability * probability * neighbours;
    EXPECT_NEAR(pairs, both, 5 * std::sqrt(3 * both) + 1) << "places depend on each other";
  }
}

TEST(RandomPlaces, AreFreeDifferentAndUniform) {
  const Csr<float> taken = weights_of(6, 7, {}, 0.4, 1, 3);
  const std::set<BlockAt> held = places_of(taken);
  std::map<BlockAt, int> hits;
  constexpr int kDraws = 4000;
  for (int seed = 0; seed < kDraws; ++seed) {
    const auto places = random_places(taken, 5, std::uint64_t(seed));
    EXPECT_EQ(std::set<BlockAt>(places.begin(), places.end()).size(), 5U);
    EXPECT_TRUE(std::is_sorted(places.begin(), places.end()));
    for (const BlockAt at : places) {
      EXPECT_FALSE(held.contains(at));
      ++hits[at];
    }
  }
  EXPECT_EQ(std::ssize(hits), free_places(taken));
  const double mean = 5.0 * kDraws / double(free_places(taken));
  // Six deviations of a binomial count.
  for (const auto& [at, count] : hits) EXPECT_NEAR(count, mean, 6 * std::sqrt(mean));
  EXPECT_EQ(std::ssize(random_places(taken, free_places(taken), 1)), free_places(taken));
}

TEST(RandomPlaces, AreNotDrawnFromMoreThanANumberOf32BitsCounts) {
  constexpr std::int64_t kSide = 1 << 16;
  const Csr<float> empty{kSide, kSide, {1, 1}, std::vector<std::int64_t>(kSide + 1), {}, {}};
  EXPECT_TRUE(random_places(empty, 0, 1).empty());
  EXPECT_THAT(test::message_of([&] { random_places(empty, 1, 1); }, ErrorCode::LimitExceeded),
              testing::HasSubstr("weights: 4294967296 places are free; at most 2147483647"));
}

TEST(SmallestBlocks, AreThoseOfASort) {
  for (const BlockShape block : {BlockShape{1, 1}, BlockShape{2, 4}})
    for (const float scale : {0x1p-60f, 1.0f, 1e6f}) {
      const int levels = scale == 1 ? 1 : 1000000;
      Csr<float> m = weights_of(64, 64, block, 0.3, levels, 4);
      for (float& value : m.values) value *= scale;
      std::vector<std::pair<double, BlockAt>> all;
      std::int64_t i = 0;
      for (const BlockAt at : places_of(m)) {
        double sum = 0;
        for (std::int64_t j = 0; j < block.area(); ++j, ++i) sum += std::abs(m.values[i]);
        all.push_back({float(sum), at});
      }
      std::sort(all.begin(), all.end());
      for (const std::int64_t k : {std::int64_t(0), std::int64_t(1), m.blocks() / 3, m.blocks()}) {
        std::vector<BlockAt> wanted;
        for (std::int64_t j = 0; j < k; ++j) wanted.push_back(all[std::size_t(j)].second);
        std::sort(wanted.begin(), wanted.end());
        EXPECT_EQ(smallest_blocks(m, k), wanted) << k;
      }
    }
}

TEST(SmallestBlocks, NameTheLayerAndThePlaceOfAValueThatIsNotFinite) {
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    Csr<float> m = weights_of(4, 6, {2, 2}, 1, 3, 1);
    m.values[4 * 4 + 1] = bad;
    EXPECT_THAT(test::message_of([&] { smallest_blocks(m, 1, "layer 2"); }),
                AllOf(HasSubstr("layer 2"), HasSubstr("block row 1, block column 1")));
  }
}

TEST(SmallestBlocks, RefuseMoreBlocksThanAreStored) {
  const Csr<float> m = weights_of(4, 6, {}, 0.5, 3, 1);
  EXPECT_THAT(refusal([&] { smallest_blocks(m, 13); }), HasSubstr("must be in 0..12"));
  EXPECT_THROW(smallest_blocks(m, -1), Error);
}

TEST(Growth, RefusesMoreBlocksThanAreFreeAndOperandsOfOtherShapes) {
  const Csr<float> m = weights_of(4, 6, {}, 0.5, 3, 1);
  const Matrix<float> q = whole_numbers(4, 2, 1), s = whole_numbers(6, 2, 2), short_s(5, 2);
  const GradientBatch batch{q.view(), s.view()}, wrong{q.view(), short_s.view()};
  const auto executor = make_executor(1);
  EXPECT_THAT(refusal([&] {
                exact_gradients({m, {&batch, 1}, 13, BlockScore::Sum, "layer 1"}, *executor);
              }),
              AllOf(HasSubstr("layer 1"), HasSubstr("13 of 12 free places")));
  EXPECT_THAT(refusal([&] { random_places(m, 13, 1); }), HasSubstr("0..12"));
  for (const std::int64_t k : {0, 1})
    EXPECT_THAT(refusal([&] { exact_gradients({m, {&wrong, 1}, k, BlockScore::Sum}, *executor); }),
                HasSubstr("the input 5 x 2"));
}

TEST(Growth, NamesTheFirstFreePlaceWhoseGradientIsNotFinite) {
  Csr<float> m = weights_of(40, 600, {}, 0.5, 3, 1);
  Matrix<float> q = whole_numbers(40, 2, 1), s = whole_numbers(600, 2, 2);
  for (float& v : q.elements()) v = 1;
  s(555, 1) = std::nanf("");
  std::int32_t row = 0;  // the first row in which column 555 is free
  while (places_of(m).contains({row, 555})) ++row;
  const GradientBatch batch{q.view(), s.view()};
  const std::string wanted =
      "block row " + std::to_string(row) + ", block column 555 is not finite";
  for (const int threads : {1, 2}) {
    const auto executor = make_executor(ExecutorKind::Threads, threads);
    EXPECT_THAT(
        test::message_of([&] { exact_gradients({m, {&batch, 1}, 2, BlockScore::Sum}, *executor); }),
        HasSubstr(wanted));
    EXPECT_THAT(test::message_of([&] {
                  sampled_gradients({m, {&batch, 1}, 2, BlockScore::Sum}, {100000, 1}, *executor);
                }),
                HasSubstr(wanted));
  }
}

TEST(EveryMethod, RefusesAShareThatIsNotInZeroToOne) {
  const Csr<float> m = weights_of(4, 6, {}, 0.5, 3, 1);
  const Matrix<float> q = whole_numbers(4, 2, 1), s = whole_numbers(6, 2, 2);
  const GradientBatch batch{q.view(), s.view()};
  const auto executor = make_executor(1);
  for (const Method& method : {Method(Set{}), Method(RigL{}), Method(Sampled{})})
    for (const double share : {std::nan(""), -0.1, 1.1})
      EXPECT_THAT(refusal([&] { rewire(method, {m, share, {&batch, 1}, 3, *executor}); }),
                  HasSubstr("it must be in 0..1"));
}

TEST(EveryMethod, KeepsTheNumberOfBlocksAndAddsOnlyFreePlaces) {
  const Csr<float> m = weights_of(48, 64, {2, 2}, 0.3, 1000, 7);
  const Matrix<float> q = whole_numbers(48, 6, 1), s = whole_numbers(64, 6, 2);
  const GradientBatch batch{q.view(), s.view()};
  const auto executor = make_executor(2);
  const Custom first{"first", [](const RewireRequest& request) {
                       return sparse::PatternChange{smallest_blocks(request.weights, 1),
                                                    random_places(request.weights, 1, 1)};
                     }};
  for (const Method& method : {Method(Static{}), Method(Set{}), Method(Set{Exclude::Original}),
                               Method(RigL{}), Method(Sampled{}), Method(first)}) {
    const auto change = rewire(method, {m, 0.4, {&batch, 1}, 3, *executor}).change;
    EXPECT_EQ(change.removed.size(), change.added.size()) << name_of(method);
    EXPECT_EQ(sparse::with_change(m, change).blocks(), m.blocks()) << name_of(method);
    EXPECT_EQ(change.added.empty(), name_of(method) == "static");
  }
  EXPECT_THROW(check(Method(Sampled{.factor = 0})), Error);
  EXPECT_THROW(check(Method(Custom{})), Error);
}

TEST(EverActive, CountsEachPlaceOnce) {
  const Csr<float> m = weights_of(6, 6, {2, 2}, 0.4, 3, 1);
  EverActive active(m);
  EXPECT_EQ(active.count(), m.blocks());
  active.add(random_places(m, 2, 1));
  active.add(random_places(m, 2, 1));
  EXPECT_EQ(active.count(), m.blocks() + 2);
  EXPECT_EQ(active.places(), 9);
  EXPECT_EQ(EverActive(3, 3, active.bits()), active);
  EXPECT_THROW(EverActive(3, 3, {1}), Error);
}

TEST(LargestGradients, TakeAPanelForEachThreadAndThreeTimesTheirNumberOfCandidates) {
  constexpr long kBest = 200'000, kZ = 4;
  const Csr<float> taken = weights_of(1024, 2048, {}, 0.05, 3, 1);
  const Matrix<float> q = whole_numbers(1024, kZ, 2), s = whole_numbers(2048, kZ, 3);
  const GradientBatch batch{q.view(), s.view()};
  for (const long threads : {1, 2}) {
    const auto executor = make_executor(ExecutorKind::Threads, int(threads));
    const long before = test::allocated_bytes();
    exact_gradients({taken, {&batch, 1}, kBest, BlockScore::Sum}, *executor);
    const host::PanelSize size = host::gradient_panel_size();
    // With a row of scores and its candidates; and the sample that the search begins with.
    const long panel = 4 * size.cols * (size.rows + 1 + 3), sample = 1 << 20;
    const long transposed = 4 * 16 * (size.cols + 16);  // rows of S, in whole blocks of our kernel
    const long candidates = 12 * 3 * kBest, places = 8 * kBest;
    EXPECT_LE(test::allocated_bytes() - before,
              threads * (panel + transposed + 8192) + candidates + places + sample);
    EXPECT_GT(4 * taken.rows * taken.cols, threads * panel + candidates / 3) << "says something";
  }
}

TEST(ParseMethod, ReadsTheNamesThatMethodsHaveAndListsThemForOthers) {
  for (const char* name : {"static", "set", "rigl", "sampled", "prune", "top-k"})
    EXPECT_EQ(name_of(parse_method(name, {})), name);
  EXPECT_EQ(std::get<RigL>(parse_method("rigl", {.pool = "max", .exclude = "original"})),
            (RigL{BlockScore::Max, Exclude::Original}));
  EXPECT_EQ(std::get<TopK>(parse_method("top-k", {.search = "sampled", .factor = 3})),
            (TopK{Search::Sampled, 3}));
  EXPECT_EQ(std::get<TopK>(parse_method("top-k", {})), TopK{}) << "has a factor of its own";
  EXPECT_EQ(std::get<Sampled>(parse_method("sampled", {})), Sampled{});
  EXPECT_EQ(test::refusal([] { parse_method("dense", {}); }),
            "method is \"dense\"; it is static, set, rigl, sampled, prune or top-k");
  EXPECT_EQ(test::refusal([] { parse_method("set", {.exclude = "no"}); }),
            "exclude is \"no\"; it is kept or original");
}

}  // namespace
}  // namespace tessera::train
