// Layers of every cut keep the same promises: rows, groups, replicas and leaves.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <new>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/distributed/cut.hpp"
#include "tessera/distributed/layer.hpp"
#include "tessera/distributed/thread_ranks.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/message_of.hpp"

namespace tessera::distributed {
namespace {

const host::HostCpu kTiny{.cores = 2, .l1_data = Bytes(2048), .l2 = Bytes(16384), .l3 = Bytes()};
constexpr std::int64_t kX = 48, kY = 40, kZ = 70;

struct CutCase {
  std::string name;
  int ranks = 1;
  std::int64_t groups = 1;
  Cut cut;
  BlockShape block = {1, 1};

  Problem problem() const {
    return {.size = {groups, kX, kY, kZ},
            .block = block,
            .density = 0.3,
            .data_type = DataType::Float,
            .grad_a = true,
            .grad_w = true};
  }
  std::vector<sparse::CheckedCsr<float>> weights() const {
    std::vector<sparse::CheckedCsr<float>> all;
    Random random(4);
    for (std::int64_t g = 0; g < groups; ++g) {
      all.push_back(
          sparse::checked(sparse::random_pattern(kX, kY, block, 0.3, std::uint64_t(g + 1))));
      for (float& value : all.back().mutable_values()) value = float(2 * random.unit() - 1);
    }
    return all;
  }
};

std::vector<CutCase> cases() {
  return {{"one rank", 1, 1, {}},
          {"rows", 3, 1, {}},
          {"rows of blocks", 5, 1, {}, {4, 2}},
          {"2 replicas", 4, 1, {.replicas = 2}},
          {"3 replicas of blocks", 6, 1, {.replicas = 3}, {4, 2}},
          {"3 groups on 2 ranks", 2, 3, {}},
          {"4 groups on 2 ranks", 2, 4, {}, {2, 4}},
          {"2 groups with 2 replicas", 8, 2, {.replicas = 2}},
          {"leaves", 3, 1, {.leaves = kLeaves}},
          {"leaves of 2 groups", 5, 2, {.leaves = kLeaves}, {4, 4}}};
}

// A layer on one rank with random operands, the same ones for each layer of its cut.
struct OnRank {
  OnRank(const CutCase& c, Communicator& ranks, std::span<const sparse::CheckedCsr<float>> weights)
      : executor(make_executor(1)), layer(c.problem(), kTiny, *executor, ranks, c.cut) {
    layer.set_weights(weights);
    const auto seed = std::uint64_t(10 * ranks.rank());
    const std::int64_t z = layer.columns_of_batch().size();
    s = random_matrix<float>(layer.facts().input_rows, z, seed);
    q_grad = random_matrix<float>(layer.facts().output_rows, z, seed + 1);
    q = Matrix<float>(q_grad.rows(), z);
    s_grad = Matrix<float>(s.rows(), z);
  }

  // Runs all passes. Returns false if one was stopped.
  bool run(const layer::PassOptions& options = {}) {
    PassTimes times;
    gradients.assign(std::size_t(layer.values()), 0.5f);
    const auto in = std::as_const(s).view(), out = std::as_const(q_grad).view();
    return layer.forward<float>(in, q.view(), options, times) &&
           layer.grad_a<float>(out, s_grad.view(), options, times) &&
           layer.grad_w<float>(out, in, gradients, options, times);
  }

  std::unique_ptr<Executor> executor;
  RankLayer layer;
  Matrix<float> s, q_grad, q, s_grad;
  std::vector<float> gradients;
};

void expect_same_results(const OnRank& a, const OnRank& b) {
  EXPECT_EQ(a.q, b.q);
  EXPECT_EQ(a.s_grad, b.s_grad);
  EXPECT_EQ(a.gradients, b.gradients);
}

void on_all_cuts(const std::function<void(const CutCase&, Communicator&)>& body) {
  for (const CutCase& c : cases()) {
    SCOPED_TRACE(c.name);
    run_ranks(c.ranks, [&](Communicator& ranks) { body(c, ranks); });
  }
}

// Exchanges up to three blocks of each row for those of the next row. Every row and column keeps
// its number of blocks, so layers of both patterns are cut alike and have the same operands.
sparse::PatternChange exchanges_of(const sparse::Csr<float>& weights) {
  const auto columns = [&](std::int64_t row) {
    return std::span(weights.col)
        .subspan(std::size_t(weights.row_begin[std::size_t(row)]),
                 std::size_t(weights.row_begin[std::size_t(row) + 1] -
                             weights.row_begin[std::size_t(row)]));
  };
  sparse::PatternChange change;
  for (std::int64_t row = 0; row + 1 < weights.block_rows(); row += 2) {
    std::vector<std::int32_t> here, next;
    std::ranges::set_difference(columns(row), columns(row + 1), std::back_inserter(here));
    std::ranges::set_difference(columns(row + 1), columns(row), std::back_inserter(next));
    const std::size_t blocks = std::min({here.size(), next.size(), std::size_t{3}});
    here.resize(blocks), next.resize(blocks);
    const auto move = [&](std::int64_t from, const std::vector<std::int32_t>& removed,
                          const std::vector<std::int32_t>& added) {
      for (const std::int32_t col : removed) change.removed.push_back({std::int32_t(from), col});
      for (const std::int32_t col : added) change.added.push_back({std::int32_t(from), col});
    };
    move(row, here, next);
    move(row + 1, next, here);
  }
  return change;
}

// Returns the part of a change that is in a rank's part of a group.
sparse::PatternChange within(const sparse::PatternChange& change, const GroupPart& part,
                             BlockShape block) {
  const auto places = [&](const std::vector<sparse::BlockAt>& all) {
    std::vector<sparse::BlockAt> own;
    for (const sparse::BlockAt& at : all)
      if (at.row * block.rows >= part.rows.begin && at.row * block.rows < part.rows.end &&
          at.col * block.cols >= part.columns.begin && at.col * block.cols < part.columns.end)
        own.push_back({std::int32_t(at.row - part.rows.begin / block.rows),
                       std::int32_t(at.col - part.columns.begin / block.cols)});
    return own;
  };
  return {places(change.removed), places(change.added)};
}

TEST(EveryCut, AChangeOfThePatternHasTheBitsOfNewWeights) {
  on_all_cuts([](const CutCase& c, Communicator& ranks) {
    const auto weights = c.weights();
    std::vector<sparse::CheckedCsr<float>> changed;
    std::vector<sparse::PatternChange> changes;
    for (const auto& matrix : weights) {
      changes.push_back(exchanges_of(*matrix));
      EXPECT_FALSE(changes.back().added.empty());
      changed.push_back(sparse::with_change(matrix, changes.back()));
    }
    OnRank expected(c, ranks, changed), got(c, ranks, weights);
    for (const GroupPart& part : got.layer.parts())
      got.layer.update_weights(within(changes[std::size_t(part.group)], part, c.block), part.group);
    for (const GroupPart& part : got.layer.parts())
      EXPECT_EQ(got.layer.weights(part.group), expected.layer.weights(part.group));
    expected.run();
    got.run();
    expect_same_results(got, expected);
    // Values reach the transpose by the new places.
    for (OnRank* const one : {&expected, &got})
      for (const GroupPart& part : one->layer.parts())
        one->layer.change_values(
            [](std::span<float> values, std::int64_t first) {
              for (std::size_t i = 0; i < values.size(); ++i)
                values[i] = 3 - values[i] + float(first + std::int64_t(i)) / 64;
            },
            part.group);
    expected.run();
    got.run();
    expect_same_results(got, expected);
  });
}

TEST(EveryCut, AChangePreparedForAnEarlierStateOrAnotherLayerIsRefused) {
  on_all_cuts([](const CutCase& c, Communicator& ranks) {
    OnRank one(c, ranks, c.weights());
    const std::int64_t group = one.layer.parts()[0].group;
    layer::PreparedUpdate stale = one.layer.prepare_update({}, group);
    const std::vector<float> values(one.layer.weights(group).values.size(), 0.5f);
    one.layer.set_values(values, group);
    const std::string message = test::refusal([&] { one.layer.commit(std::move(stale)); });
    EXPECT_NE(message.find("call prepare_update of this layer again"), std::string::npos);
    EXPECT_EQ(one.layer.weights(group).values, values);
    host::HostLayer alone(c.problem(), kTiny, *one.executor);
    alone.set_weights(c.weights());
    layer::PreparedUpdate foreign = alone.prepare_update({}, group);
    EXPECT_EQ(test::refusal([&] { one.layer.commit(std::move(foreign)); }), message);
  });
}

TEST(EveryCut, ABatchWithoutColumnsHasNoResultsAndGradientsOfZero) {
  on_all_cuts([](const CutCase& c, Communicator& ranks) {
    if (c.cut.leaves > 0) return;  // these have the columns of the problem
    OnRank one(c, ranks, c.weights());
    for (Matrix<float>* m : {&one.s, &one.q_grad, &one.q, &one.s_grad})
      *m = Matrix<float>(m->rows(), 0);
    EXPECT_TRUE(one.run());
    EXPECT_EQ(one.gradients, std::vector<float>(one.gradients.size()));
  });
}

// A sum of GradW over leaves is rounded once more at each leaf; other passes know no leaves.
TEST(EveryCut, RoundsAsOftenAsItsSumsHaveParts) {
  on_all_cuts([](const CutCase& c, Communicator& ranks) {
    if (c.cut.leaves == 0) return;
    const OnRank one(c, ranks, c.weights());
    Cut without = c.cut;
    without.leaves = 0;
    const OnRank plain({"", c.ranks, c.groups, without, c.block}, ranks, c.weights());
    EXPECT_EQ(one.layer.rounding(Pass::Fwd).partials, plain.layer.rounding(Pass::Fwd).partials);
    EXPECT_GE(one.layer.rounding(Pass::GradW).partials, c.cut.leaves);
  });
}

TEST(EveryCut, NewValuesHaveTheBitsOfNewWeights) {
  on_all_cuts([](const CutCase& c, Communicator& ranks) {
    auto other = c.weights();
    for (auto& matrix : other)
      for (float& value : matrix.mutable_values()) value = 1 - 2 * value;
    OnRank expected(c, ranks, c.weights()), got(c, ranks, other);
    for (const GroupPart& part : got.layer.parts())
      got.layer.set_values(expected.layer.weights(part.group).values, part.group);
    expected.run();
    got.run();
    expect_same_results(got, expected);
  });
}

// With leaves every rank has all values, and all change them alike.
TEST(EveryCut, AChangeOfValuesThatThrowsLeavesWhatItChangedForEveryPass) {
  on_all_cuts([](const CutCase& c, Communicator& ranks) {
    OnRank expected(c, ranks, c.weights()), got(c, ranks, c.weights());
    const bool throws = c.cut.leaves > 0 || ranks.rank() == 0;
    for (const GroupPart& part : got.layer.parts()) {
      const auto change = [&](std::span<float> values, std::int64_t) {
        for (float& value : values) value /= 2;
        if (throws) throw std::bad_alloc();
      };
      try {
        got.layer.change_values(change, part.group);
      } catch (const std::bad_alloc&) {
      }
      EXPECT_NE(got.layer.weights(part.group), expected.layer.weights(part.group));
      expected.layer.set_values(got.layer.weights(part.group).values, part.group);
    }
    expected.run();
    got.run();
    expect_same_results(got, expected);
  });
}

TEST(EveryCut, BiasActivationMaskAndSumHaveTheBitsOfALoopAfterThePass) {
  on_all_cuts([](const CutCase& c, Communicator& ranks) {
    OnRank plain(c, ranks, c.weights()), fused(c, ranks, c.weights());
    plain.run();
    const auto bias = random_matrix<float>(plain.q.rows(), 1, 8);
    const auto mask = random_matrix<float>(plain.s.rows(), plain.s.cols(), 9);
    std::vector<float> sums(plain.gradients.size(), 0.25f);
    const auto in = std::as_const(fused.s).view(), out = std::as_const(fused.q_grad).view();
    fused.layer.forward<float>(in, fused.q.view(),
                               {.bias = bias.elements(), .activation = codelets::Activation::Relu});
    fused.layer.grad_a<float>(out, fused.s_grad.view(), {.where_positive = mask.view()});
    fused.layer.grad_w<float>(out, in, sums, {.accumulate = layer::Accumulate::Yes});
    for (std::int64_t r = 0; r < plain.q.rows(); ++r)
      for (std::int64_t z = 0; z < plain.q.cols(); ++z) {
        const float sum = plain.q(r, z) + bias(r, 0);
        plain.q(r, z) = sum < 0 ? 0 : sum;
      }
    for (std::int64_t r = 0; r < mask.rows(); ++r)
      for (std::int64_t z = 0; z < mask.cols(); ++z)
        if (!(mask(r, z) > 0)) plain.s_grad(r, z) = 0;
    for (float& gradient : plain.gradients) gradient += 0.25f;
    fused.gradients = sums;
    expect_same_results(fused, plain);
  });
}

TEST(EveryCut, ASelfCheckPassesAndChangesNoResult) {
  on_all_cuts([](const CutCase& c, Communicator& ranks) {
    OnRank plain(c, ranks, c.weights()), checked(c, ranks, c.weights());
    verify::Checksums checksums;
    EXPECT_TRUE(plain.run());
    EXPECT_TRUE(checked.run({.self_check = &checksums}));
    EXPECT_TRUE(checksums.ok() && checksums.compared > 0);
    expect_same_results(checked, plain);
  });
}

TEST(EveryCut, AStopOfOneRankEndsThePassOnAll) {
  on_all_cuts([](const CutCase& c, Communicator& ranks) {
    OnRank one(c, ranks, c.weights());
    std::stop_source stop;
    if (ranks.rank() == ranks.size() - 1) stop.request_stop();
    EXPECT_FALSE(one.run({.stop = stop.get_token()}));
    EXPECT_TRUE(one.run());  // the layer is as it was
  });
}

TEST(EveryCut, RefusedWeightsLeaveTheOldOnes) {
  on_all_cuts([](const CutCase& c, Communicator& ranks) {
    OnRank plain(c, ranks, c.weights()), refused(c, ranks, c.weights());
    auto others = c.weights();
    others.back() = sparse::checked(sparse::random_pattern(kX, 2 * kY, c.block, 0.3, 1));
    EXPECT_NE(test::refusal([&] { refused.layer.set_weights(others); }).find("48 x 80"),
              std::string::npos);
    others.pop_back();
    test::refusal([&] { refused.layer.set_weights(others); });
    plain.run();
    refused.run();
    expect_same_results(refused, plain);
  });
}

// All blocks are in one row, so a part of the transpose would be empty.
TEST(Replicas, RefusedWeightsLeaveTheOldOnes) {
  const CutCase c{"4 replicas", 4, 1, {.replicas = 4}};
  sparse::Csr<float> row{.rows = kX, .cols = kY};
  row.row_begin.assign(std::size_t(kX) + 1, kY);
  row.row_begin[0] = 0;
  for (std::int32_t col = 0; col < kY; ++col) row.col.push_back(col);
  row.values.assign(std::size_t(kY), 1.0f);
  run_ranks(4, [&](Communicator& ranks) {
    OnRank plain(c, ranks, c.weights()), refused(c, ranks, c.weights());
    EXPECT_NE(
        test::refusal([&] { refused.layer.set_weights(sparse::checked(row)); }).find("use fewer"),
        std::string::npos);
    plain.run();
    refused.run();
    expect_same_results(refused, plain);
  });
}

TEST(WhyNot, NamesWhatACutCannotDoAndTheRemedy) {
  const auto why = [](Problem problem, const Cut& cut, int ranks) {
    return why_not(cut, problem, ranks);
  };
  const Problem problem{.size = {2, kX, kY, kZ}, .data_type = DataType::Float};
  EXPECT_EQ(why(problem, {}, 3), "");
  EXPECT_EQ(why(problem, {.replicas = 2}, 8), "");
  EXPECT_NE(why(problem, {.replicas = 3}, 8).find("3 replicas do not divide 4 ranks; give"),
            std::string::npos);
  EXPECT_NE(why(problem, {.replicas = 2, .leaves = 4}, 8).find("leave out replicas"),
            std::string::npos);
  EXPECT_NE(why(problem, {.leaves = 5000}, 2).find("give 1 to 4096"), std::string::npos);
  Problem half = problem;
  half.data_type = DataType::Half;
  EXPECT_NE(why(half, {.replicas = 2}, 8).find("use 1 replica"), std::string::npos);
}

TEST(SetRows, IsForRanksThatHaveWholeRowsOfOneGroup) {
  for (const CutCase& c : cases())
    run_ranks(c.ranks, [&](Communicator& ranks) {
      const auto executor = make_executor(1);
      RankLayer layer(c.problem(), kTiny, *executor, ranks, c.cut);
      const bool can = c.groups == 1 && c.cut.replicas == 1 && c.cut.leaves == 0;
      EXPECT_NE(test::refusal([&] {
                  layer.set_rows(RowCut(), {});
                }).find(can ? "cut of rows: it has 0 runs" : "call set_weights"),
                std::string::npos);
    });
}

}  // namespace
}  // namespace tessera::distributed
