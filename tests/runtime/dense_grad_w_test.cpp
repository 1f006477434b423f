#include "tessera/runtime/dense_grad_w.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/random.hpp"
#include "tessera/codelets/cost/selection_cycles.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::runtime {
namespace {

using codelets::BlockScore;
using sparse::BlockAt;
using testing::HasSubstr;
using testing::ThrowsMessage;

device::Machine machine_of(std::int64_t tiles, std::int64_t memory = 638976) {
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = tiles;
  machine.tile_memory = Bytes(memory);
  return machine;
}

template <class T>
Matrix<T> small_numbers(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  Random random(seed);
  Matrix<T> m(rows, cols);
  for (T& v : m.elements()) v = T(float(random.below(5)) - 2.0f);
  return m;
}

// A layer with operands of small whole numbers, whose sums are exact and often equal.
template <class T>
struct Search {
  Problem problem;
  sparse::Csr<float> taken;
  Matrix<T> q_grad, s;

  Search(std::int64_t x, std::int64_t y, std::int64_t z, BlockShape block, double density)
      : problem{.size = {1, x, y, z},
                .block = block,
                .density = density,
                .data_type = data_type_of<T>(),
                .grad_w = true},
        taken(sparse::random_pattern(round_up(x, block.rows), round_up(y, block.cols), block,
                                     density, 3)),
        q_grad(small_numbers<T>(x, z, 1)),
        s(small_numbers<T>(y, z, 2)) {}

  // The places in double, without any code of the search.
  std::vector<BlockAt> wanted(std::int64_t k, BlockScore rule) const {
    std::vector<std::pair<double, BlockAt>> all;
    for (std::int32_t row = 0; row < taken.block_rows(); ++row)
      for (std::int32_t col = 0; col < taken.block_cols(); ++col) {
        const auto first = taken.col.begin() + taken.row_begin[std::size_t(row)],
                   last = taken.col.begin() + taken.row_begin[std::size_t(row) + 1];
        if (!std::binary_search(first, last, col))
          all.push_back({-score(row, col, rule), {row, col}});
      }
    std::sort(all.begin(), all.end());
    std::vector<BlockAt> places;
    for (std::int64_t i = 0; i < k; ++i) places.push_back(all[std::size_t(i)].second);
    std::sort(places.begin(), places.end());
    return places;
  }

  double score(std::int64_t row, std::int64_t col, BlockScore rule) const {
    const BlockShape b = taken.block;
    double sum = 0, most = 0;
    for (std::int64_t x = row * b.rows; x < std::min((row + 1) * b.rows, q_grad.rows()); ++x)
      for (std::int64_t y = col * b.cols; y < std::min((col + 1) * b.cols, s.rows()); ++y) {
        double g = 0;
        for (std::int64_t z = 0; z < s.cols(); ++z)
          g += double(float(q_grad(x, z)) * float(s(y, z)));
        sum += std::abs(g);
        most = std::max(most, std::abs(g));
      }
    return rule == BlockScore::Sum ? sum : most;
  }

  LargestGradients largest(std::int64_t k, const planner::DenseGradWPlan& plan,
                           const device::Machine& machine,
                           device::ExchangeMode mode = device::ExchangeMode::Share, int threads = 1,
                           BlockScore rule = BlockScore::Sum) {
    const auto executor = make_executor(threads);
    DenseGradW search(plan, machine, mode, *executor);
    EXPECT_LE(search.memory().high_water(), plan.dense.cost.temp + plan.dense.cost.resident);
    EXPECT_LE(search.memory().high_water(), machine.tile_memory);
    return search.largest<T>(taken, k, rule, std::as_const(q_grad).view(), std::as_const(s).view());
  }
};

planner::DenseGradWPlan plan_for(const Problem& problem, const device::Machine& machine,
                                 std::int64_t places, std::int64_t spare = 4) {
  const auto result =
      planner::plan_dense_grad_w(problem, machine, {.places = places, .spare = spare});
  EXPECT_TRUE(result.plan) << result.reason;
  return *result.plan;
}

template <class T>
class DenseGradWOf : public testing::Test {};
using Types = testing::Types<float, Half, BFloat16>;
TYPED_TEST_SUITE(DenseGradWOf, Types);

TYPED_TEST(DenseGradWOf, FindsThePlacesOfASortWithTiesByPlaceForEveryBlock) {
  for (const BlockShape block : {BlockShape{1, 1}, BlockShape{4, 4}, BlockShape{3, 2}})
    for (const BlockScore rule : {BlockScore::Sum, BlockScore::Max}) {
      Search<TypeParam> search(37, 52, 6, block, 0.3);
      const device::Machine machine = machine_of(13);
      for (const std::int64_t k : {1, 9, 60}) {
        const auto found = search.largest(k, plan_for(search.problem, machine, k), machine,
                                          device::ExchangeMode::Isolate, 2, rule);
        EXPECT_EQ(found.places, search.wanted(k, rule)) << block.rows << "x" << block.cols;
      }
    }
}

// Little memory asks for rounds. Tiles that keep one place run the program many times.
TEST(DenseGradW, FindsTheSamePlacesInRoundsAndWithFewPlacesKept) {
  Search<float> search(96, 128, 8, {1, 1}, 0.1);
  const device::Machine large = machine_of(8), small = machine_of(8, 6000);
  const planner::DenseGradWPlan one = plan_for(search.problem, large, 300);
  EXPECT_EQ(one.pass().rounds.product(), 1);
  planner::DenseGradWPlan rounds = plan_for(search.problem, small, 1);
  EXPECT_GT(rounds.pass().rounds.product(), 1);
  rounds.keep = 4;
  const auto at_once = search.largest(300, one, large), often = search.largest(300, rounds, small);
  EXPECT_EQ(at_once.places, search.wanted(300, BlockScore::Sum));
  EXPECT_EQ(often.places, at_once.places);
  EXPECT_GT(often.runs, at_once.runs);
  EXPECT_EQ(std::ssize(often.ledger.steps) % often.runs, 0);
}

TEST(DenseGradW, DoesNotDependOnThreadsOrModeAndLeavesOutWhatIsStored) {
  Search<float> search(40, 40, 5, {2, 2}, 0.5);
  const device::Machine machine = machine_of(16);
  const planner::DenseGradWPlan plan = plan_for(search.problem, machine, 200);
  const auto share = search.largest(200, plan, machine),
             isolate = search.largest(200, plan, machine, device::ExchangeMode::Isolate, 3);
  EXPECT_EQ(share.places, isolate.places);
  EXPECT_EQ(share.ledger, isolate.ledger);
  EXPECT_EQ(share.upload, isolate.upload);
  EXPECT_EQ(std::ssize(share.places), 200);
  const std::int64_t tiles = 16;
  EXPECT_LE(share.download.value, share.runs * tiles * (8 + 8 * plan.keep));
  EXPECT_GE(share.upload.value, 400 / 8) << "a bit for each block";
}

TEST(DenseGradW, CostsWhatWasPlannedButForASelection) {
  for (const BlockShape block : {BlockShape{1, 1}, BlockShape{4, 4}}) {
    Search<float> search(256, 192, 16, block, 0.1);
    Random random(5);
    for (Matrix<float>* m : {&search.q_grad, &search.s})
      for (float& v : m->elements()) v = float(random.unit()) - 0.5f;
    const device::Machine machine = machine_of(24);
    const std::int64_t k = search.taken.blocks() * 3 / 10;
    const planner::DenseGradWPlan plan = plan_for(search.problem, machine, k);
    const auto found = search.largest(k, plan, machine);
    EXPECT_EQ(found.runs, 1);
    const Cycles one_selection =
        codelets::selection_cycles({.keep = plan.keep}, {.selections = 1}, machine.workers);
    Cycles planned_selection, run_selection;
    for (const planner::CostTerm& term : plan.pass().cost.terms)
      if (term.name == planner::Term::ReduceSums) planned_selection = term.cycles;
    for (const device::PhaseTotal& phase : found.ledger.phases())
      if (phase.phase == Phase::Reduce) run_selection = phase.compute;
    // The data decide how often a list is full; everything else is as planned.
    EXPECT_EQ(found.ledger.total() - run_selection, plan.dense.cost.cycles - planned_selection);
    EXPECT_NEAR(double(run_selection.value), double(planned_selection.value),
                1.1 * double(one_selection.value));
  }
}

TEST(DenseGradW, RefusesWhatDoesNotBelongToThePlan) {
  Search<float> search(20, 30, 4, {1, 1}, 0.2);
  const device::Machine machine = machine_of(4);
  const auto executor = make_executor(1);
  DenseGradW of_plan(plan_for(search.problem, machine, 5), machine, device::ExchangeMode::Share,
                     *executor);
  const auto q = std::as_const(search.q_grad).view(), s = std::as_const(search.s).view();
  const auto with = [&](const sparse::Csr<float>& taken, std::int64_t k, MatrixView<const float> a,
                        MatrixView<const float> b) {
    return of_plan.largest<float>(taken, k, BlockScore::Sum, a, b, "layer 2");
  };
  EXPECT_TRUE(with(search.taken, 0, q, s).places.empty());
  EXPECT_THAT([&] { with(search.taken, 481, q, s); },
              ThrowsMessage<Error>(HasSubstr("layer 2: 481 of 480 free places")));
  EXPECT_THAT([&] { with(search.taken, 5, s, q); }, ThrowsMessage<Error>(HasSubstr("20 x 4")));
  EXPECT_THAT([&] { with(sparse::random_pattern(20, 20, {}, 0.2, 1), 5, q, s); },
              ThrowsMessage<Error>(HasSubstr("20 x 20 blocks")));
  const Matrix<Half> half(20, 4), other(30, 4);
  EXPECT_THROW(of_plan.largest<Half>(search.taken, 5, BlockScore::Sum, half.view(), other.view()),
               Error);
}

TEST(DenseGradW, RefusesGradientsThatAreNotFiniteAtFreePlacesOnly) {
  Search<float> search(20, 30, 4, {1, 1}, 0.2);
  const device::Machine machine = machine_of(4);
  const planner::DenseGradWPlan plan = plan_for(search.problem, machine, 5);
  search.q_grad(3, 2) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT([&] { search.largest(5, plan, machine); },
              ThrowsMessage<Error>(HasSubstr("block row 3")));
  // All places of the row are stored, so nobody asks for their gradients.
  std::vector<BlockAt> row;
  for (std::int32_t col = 0; col < 30; ++col) row.push_back({3, col});
  sparse::Csr<float> full = search.taken;
  sparse::PatternChange change;
  for (const BlockAt at : row) {
    const auto first = full.col.begin() + full.row_begin[3],
               last = full.col.begin() + full.row_begin[4];
    if (!std::binary_search(first, last, at.col)) change.added.push_back(at);
  }
  search.taken = sparse::with_change(full, change);
  EXPECT_EQ(search.largest(5, plan, machine).places.size(), 5U);
}

TEST(DenseGradWPlan, SaysWhatDoesNotFit) {
  const Search<float> search(64, 64, 512, {16, 16}, 0.2);
  const auto none = planner::plan_dense_grad_w(search.problem, machine_of(2, 2048), {});
  EXPECT_FALSE(none.plan);
  EXPECT_THAT(none.reason, testing::AllOf(HasSubstr("64 x 64"), HasSubstr("bytes at least"),
                                          HasSubstr("use more tiles")));
  EXPECT_THROW(planner::plan_dense_grad_w(search.problem, machine_of(2), {.places = 0}), Error);
  EXPECT_THROW(planner::plan_dense_grad_w(search.problem, machine_of(2), {.spare = 0}), Error);
  Problem groups = search.problem;
  groups.size.g = 2;
  EXPECT_THROW(planner::plan_dense_grad_w(groups, machine_of(2), {}), Error);
}

TEST(DenseGradWPlan, CutsBetweenBlocksAndNeverAlongTheBatch) {
  for (const BlockShape block : {BlockShape{1, 1}, BlockShape{4, 4}, BlockShape{5, 3}}) {
    const Search<float> search(100, 90, 64, block, 0.2);
    const auto plan = plan_for(search.problem, machine_of(50, 20000), 40);
    EXPECT_EQ(plan.pass().parts.inner, 1);
    EXPECT_EQ(plan.pass().rounds.inner, 1);
    EXPECT_EQ(plan.pass().grain.rows % block.rows, 0);
    EXPECT_EQ(plan.pass().grain.columns % block.cols, 0);
  }
}

}  // namespace
}  // namespace tessera::runtime
