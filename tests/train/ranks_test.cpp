// A network that ranks train with parts of each batch has the same bits for every number of ranks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tessera/distributed/thread_ranks.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/tests/train/training_case.hpp"
#include "tessera/tools/ranks/train_share.hpp"

namespace tessera::train {
namespace {

// Returns the bits of a run of two epochs on the first rank.
std::vector<double> bits_of_run(int count, const NetworkOptions& shape,
                                const TrainOptions& options) {
  const DataSet data = test::small_data();
  std::vector<double> bits;
  distributed::run_ranks(count, [&](distributed::Communicator& ranks) {
    const auto executor = make_executor(1);
    const auto share = tools::make_batch_share(ranks, shape.batch);
    Network network(shape, first_weights(shape), shared_layers(*share, *executor), *executor,
                    share.get());
    Trainer trainer(network, data, options);
    trainer.epoch();
    trainer.epoch();
    if (ranks.rank() == 0) bits = test::bits_of(trainer);
  });
  return bits;
}

TEST(Training, HasTheBitsOfOneRankOnAnyNumber) {
  NetworkOptions blocks = test::small_network({2, 2});
  blocks.batch = 38;  // leaves of two and of four columns
  for (const auto& [shape, method] : {std::pair{test::small_network(), Method(RigL{})},
                                      {test::small_network(), TopK{}},
                                      {blocks, Set{}}}) {
    TrainOptions options = test::small_options(method);
    if (std::holds_alternative<TopK>(method)) options.optimiser = {.rule = Adam{}};
    const std::vector<double> one = bits_of_run(1, shape, options);
    // More ranks than leaves, of which some have no columns, take seconds.
    for (const int count :
         std::holds_alternative<RigL>(method) ? std::vector{2, 3, 17} : std::vector{2, 7})
      EXPECT_EQ(bits_of_run(count, shape, options), one) << count << " ranks";
  }
}

// Sums in another order differ in last places alone, so a fault that all ranks have shows, too.
TEST(Training, LearnsOnRanksAsInOneProcess) {
  const TrainOptions options = test::small_options(Static{});
  const DataSet data = test::small_data();
  const auto executor = make_executor(1);
  Network<> network(test::small_network(), host_layers(*executor), *executor);
  Trainer trainer(network, data, options);
  trainer.epoch();
  trainer.epoch();
  const std::vector<double> wanted = test::bits_of(trainer),
                            ranks = bits_of_run(3, test::small_network(), options);
  ASSERT_EQ(ranks.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(ranks[i], wanted[i], 1e-4) << i;
}

// Returns the message of two ranks, of which the second changes what it trains on and how.
template <class Change>
std::string refusal_of(const Change& change) {
  return test::message_of(
      [&] {
        distributed::run_ranks(2, [&](distributed::Communicator& ranks) {
          const auto executor = make_executor(1);
          DataSet data = test::small_data();
          const NetworkOptions shape = test::small_network();
          const auto share = tools::make_batch_share(ranks, shape.batch);
          Network network(shape, first_weights(shape), shared_layers(*share, *executor), *executor,
                          share.get());
          TrainOptions options = test::small_options(RigL{});
          if (ranks.rank() == 1) change(data, options);
          const Trainer trainer(network, data, options);
        });
      },
      ErrorCode::InvalidArgument);
}

TEST(Training, RefusesRanksWithOtherOptionsLabelsOrImages) {
  EXPECT_THAT(refusal_of([](auto&, auto& options) { options.rate.first += 1; }),
              testing::HasSubstr("options"));
  EXPECT_THAT(refusal_of([](auto& data, auto&) { data.test.labels[0] = data.test.labels[0] == 0; }),
              testing::HasSubstr("labels"));
  EXPECT_THAT(refusal_of([](auto& data, auto&) { data.training.pixels[0] ^= 1; }),
              testing::HasSubstr("images"));
}

}  // namespace
}  // namespace tessera::train
