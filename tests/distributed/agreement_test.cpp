// Ranks that were given different things refuse them before they exchange results.

#include "tessera/distributed/agreement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/distributed/files.hpp"
#include "tessera/distributed/layer.hpp"
#include "tessera/distributed/thread_ranks.hpp"
#include "tessera/io/write.hpp"
#include "tessera/sparse/part.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/tests/support/temporary_folder.hpp"

namespace tessera::distributed {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

constexpr std::int64_t kSide = 48;
const host::HostCpu kCpu{.cores = 2, .l1_data = Bytes(2048), .l2 = Bytes(16384), .l3 = Bytes()};

Problem problem_of(std::int64_t batch, std::int64_t groups = 1) {
  return {.size = {groups, kSide, kSide, batch},
          .block = {1, 1},
          .density = 0.3,
          .data_type = DataType::Float,
          .grad_a = true,
          .grad_w = true};
}

sparse::CheckedCsr<float> weights_of(std::uint64_t seed) {
  return sparse::checked(sparse::random_pattern(kSide, kSide, {1, 1}, 0.3, seed));
}

// Runs `body` on three ranks, each of which must refuse, and returns the messages by rank.
std::vector<std::string> refusals(const std::function<void(Communicator&, Executor&)>& body) {
  std::vector<std::string> messages(3);
  run_ranks(3, [&](Communicator& ranks) {
    const auto executor = make_executor(1);
    messages[std::size_t(ranks.rank())] = test::refusal([&] { body(ranks, *executor); });
  });
  return messages;
}

TEST(RequireSame, NamesTheRanksThatDifferAndBothTextsOnEveryRank) {
  const auto of = [&](std::vector<std::int64_t> numbers) {
    return refusals([&](Communicator& ranks, Executor&) {
      const std::int64_t own = numbers[std::size_t(ranks.rank())];
      require_same(ranks, "set_weights", {given_text("batch", std::to_string(own))});
    });
  };
  EXPECT_THAT(of({5, 5, 7}), Each(HasSubstr("set_weights: rank 2 was given another batch than rank "
                                            "0: rank 2 has 7, rank 0 has 5")));
  EXPECT_THAT(of({5, 7, 8}), Each(HasSubstr("ranks 1, 2 were given another batch")));
  EXPECT_THAT(of({4, 5, 5}), Each(HasSubstr("ranks 1, 2 were given another batch")));
}

TEST(RequireSame, LetsRanksWithTheSamePass) {
  run_ranks(3, [](Communicator& ranks) {
    require_same(ranks, "run",
                 {given_problem(problem_of(8)), given_caches(kCpu),
                  given_weights(std::vector{weights_of(1), weights_of(2)})});
  });
}

TEST(Digest, DiffersForWhatDiffersInOneNumber) {
  const auto digest = [](const sparse::Csr<float>& m) {
    return given_weights(std::vector{sparse::checked(m)}).digest;
  };
  const sparse::Csr<float> whole = *weights_of(1);
  sparse::Csr<float> other = whole;
  EXPECT_EQ(digest(other), digest(whole));
  other.values[7] = -other.values[7];
  EXPECT_NE(digest(other), digest(whole));
  other = whole;
  other.values[3] += 1;
  EXPECT_NE(digest(other), digest(whole));
  other = whole;
  other.cols += 1;
  EXPECT_NE(digest(other), digest(whole));
  EXPECT_NE(given_problem(problem_of(8)).digest, given_problem(problem_of(9)).digest);
  // Two lists are not the same as one that is as long as both.
  EXPECT_NE(Digest().add(std::int64_t{1}).add(std::int64_t{2}).value(),
            Digest().add(std::span<const std::int64_t>(std::vector<std::int64_t>{1, 2})).value());
}

// Signs that three neighbours change together had the same digest once.
TEST(Digest, SeesSignsThatChangeTogether) {
  const auto of_signs = [](unsigned negated) {
    std::vector<float> values;
    for (unsigned i = 0; i < 12; ++i) values.push_back((negated >> i & 1) != 0 ? -1.0f : 1.0f);
    return Digest().add(std::span<const float>(values)).value();
  };
  std::set<std::uint64_t> digests;
  for (unsigned negated = 0; negated < 1u << 12; ++negated) digests.insert(of_signs(negated));
  EXPECT_EQ(digests.size(), 1u << 12);
}

// Computed apart, by the formula: the bytes behind the last whole word count as one with zeros.
TEST(Digest, HasTheFigureOfItsFormula) {
  EXPECT_EQ(given_text("text", "tessellated").digest, 0xbd01bfcabe95d1e9);
}

TEST(RanksThatDiffer, AreRefusedByALayerOverRows) {
  const auto run = [](auto&& problem, auto&& weights, auto&& cpu) {
    return refusals([&](Communicator& ranks, Executor& executor) {
      RankLayer layer(problem(ranks.rank()), cpu(ranks.rank()), executor, ranks);
      layer.set_weights(weights(ranks.rank()));
    });
  };
  const auto same = [](int) { return problem_of(8); };
  const auto seed_1 = [](int) { return weights_of(1); };
  const auto cpu = [](int) { return kCpu; };
  EXPECT_THAT(run([](int rank) { return problem_of(rank == 1 ? 9 : 8); }, seed_1, cpu),
              Each(HasSubstr("rank 1 was given another problem than rank 0")));
  EXPECT_THAT(run(
                  same, [](int rank) { return weights_of(rank == 2 ? 7 : 1); }, cpu),
              Each(HasSubstr("rank 2 was given another matrix of weights than rank 0")));
  EXPECT_THAT(run(same, seed_1,
                  [](int rank) {
                    host::HostCpu own = kCpu;
                    if (rank == 1) own.l2 = Bytes(32768);
                    return own;
                  }),
              Each(AllOf(HasSubstr("rank 1 was given another description of the caches"),
                         HasSubstr("rank 0 has 2048, 16384 and 0 bytes"))));
}

TEST(RanksThatDiffer, AreRefusedByARankwiseLayerOfOtherCuts) {
  EXPECT_THAT(refusals([](Communicator& ranks, Executor& executor) {
                const RowCut cut =
                    ranks.rank() == 1 ? RowCut{{0, 10, 20, kSide}} : RowCut{{0, 16, 32, kSide}};
                RankLayer layer(problem_of(8), kCpu, executor, ranks);
                layer.set_rows(cut, rows_of(*weights_of(1), cut.of(ranks.rank())));
              }),
              Each(AllOf(HasSubstr("rank 1 was given another cut than rank 0"),
                         HasSubstr("runs of rows, rows from 0, 10, 20, 48"))));
}

TEST(RanksThatDiffer, AreRefusedByALayerOfGroups) {
  EXPECT_THAT(refusals([](Communicator& ranks, Executor& executor) {
                RankLayer layer(problem_of(8, 3), kCpu, executor, ranks);
                // Every rank has a group of its own, so no exchange would show the difference.
                const std::uint64_t seed = ranks.rank() == 2 ? 9 : 1;
                const std::vector weights{weights_of(seed), weights_of(2), weights_of(3)};
                layer.set_weights(weights);
              }),
              Each(HasSubstr("rank 2 was given another matrix of weights")));
}

TEST(RanksThatDiffer, AreRefusedByALayerWithReplicas) {
  EXPECT_THAT(refusals([](Communicator& ranks, Executor& executor) {
                RankLayer layer(problem_of(8), kCpu, executor, ranks,
                                {.replicas = ranks.rank() == 1 ? 3 : 1});
                layer.set_weights(weights_of(1));
              }),
              Each(HasSubstr("another cut than rank 0: rank 1 has 3 replicas of runs of rows")));
}

TEST(RanksThatDiffer, AreRefusedByALayerOverTheBatch) {
  EXPECT_THAT(refusals([](Communicator& ranks, Executor& executor) {
                RankLayer layer(problem_of(48), kCpu, executor, ranks, {.leaves = kLeaves});
                layer.set_weights(weights_of(ranks.rank() == 1 ? 5 : 1));
              }),
              Each(HasSubstr("rank 1 was given another matrix of weights")));
}

TEST(RanksThatDiffer, AreRefusedWhenTheirFilesDiffer) {
  const test::TemporaryFolder folder;
  const std::string first = folder.write("a.mtx", io::write_mtx(*weights_of(1))),
                    other = folder.write("b.mtx", io::write_mtx(*weights_of(2)));
  EXPECT_THAT(refusals([&](Communicator& ranks, Executor&) {
                read_own_rows(ranks, ranks.rank() == 1 ? other : first);
              }),
              Each(AllOf(HasSubstr("rank 1 was given another file"), HasSubstr("b.mtx"))));
}

TEST(ResultsOverOperands, AreRefusedAcrossTheGroupsOfARank) {
  run_ranks(1, [](Communicator& ranks) {
    const auto executor = make_executor(1);
    RankLayer layer(problem_of(8, 2), kCpu, *executor, ranks);
    layer.set_weights(std::vector{weights_of(1), weights_of(2)});
    // The result of the first group would be the operand of the second one.
    Matrix<float> memory(3 * kSide, 8);
    const MatrixView<float> s = memory.view().sub({0, 2 * kSide}, {0, 8}),
                            q = memory.view().sub({kSide, 3 * kSide}, {0, 8});
    test::refusal([&] { layer.forward<float>(MatrixView<const float>(s), q); });
  });
}

TEST(MovedFrom, ALayerOverRowsRefusesAndMayBeAssignedTo) {
  run_ranks(1, [](Communicator& ranks) {
    const auto executor = make_executor(1);
    RankLayer first(problem_of(8), kCpu, *executor, ranks);
    RankLayer second(std::move(first));
    EXPECT_THAT(test::refusal([&] { first.set_weights(weights_of(1)); }),
                HasSubstr("RankLayer was moved from"));
    first = std::move(second);
    first.set_weights(weights_of(1));
  });
}

}  // namespace
}  // namespace tessera::distributed
