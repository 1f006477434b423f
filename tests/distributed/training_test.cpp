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

namespace tessera::distributed {
namespace {

// Returns the bits of a run of two epochs on the first rank.
std::vector<double> bits_of_run(int count, const train::NetworkOptions& shape,
                                const train::TrainOptions& options) {
  const train::DataSet data = test::small_data();
  std::vector<double> bits;
  run_ranks(count, [&](Communicator& ranks) {
    const auto executor = make_executor(1);
    const auto share = tools::make_batch_share(ranks, shape.batch);
    train::Network network(shape, train::first_weights(shape),
                           train::shared_layers(*share, *executor), *executor, share.get());
    train::Trainer trainer(network, data, options);
    trainer.epoch();
    trainer.epoch();
    if (ranks.rank() == 0) bits = test::bits_of(trainer);
  });
  return bits;
}

TEST(Training, HasTheBitsOfOneRankOnAnyNumber) {
  train::NetworkOptions blocks = test::small_network({2, 2});
  blocks.batch = 38;  // leaves of two and of four columns
  for (const auto& [shape, method] :
       {std::pair{test::small_network(), train::Method(train::RigL{})},
        {test::small_network(), train::TopK{}},
        {blocks, train::Set{}}}) {
    train::TrainOptions options = test::small_options(method);
    if (std::holds_alternative<train::TopK>(method)) options.optimiser = {.rule = train::Adam{}};
    const std::vector<double> one = bits_of_run(1, shape, options);
    for (const int count : {2, 3, 7, 17})
      EXPECT_EQ(bits_of_run(count, shape, options), one) << count << " ranks";
  }
}

// Returns the message of two ranks, of which the second changes what it trains on and how.
template <class Change>
std::string refusal_of(const Change& change) {
  return test::message_of(
      [&] {
        run_ranks(2, [&](Communicator& ranks) {
          const auto executor = make_executor(1);
          train::DataSet data = test::small_data();
          const train::NetworkOptions shape = test::small_network();
          const auto share = tools::make_batch_share(ranks, shape.batch);
          train::Network network(shape, train::first_weights(shape),
                                 train::shared_layers(*share, *executor), *executor, share.get());
          train::TrainOptions options = test::small_options(train::RigL{});
          if (ranks.rank() == 1) change(data, options);
          const train::Trainer trainer(network, data, options);
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
}  // namespace tessera::distributed
