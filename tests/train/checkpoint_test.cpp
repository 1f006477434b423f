#include "tessera/train/checkpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tessera/base/file.hpp"
#include "tessera/io/array.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/tests/support/temporary_folder.hpp"
#include "tessera/tests/train/training_case.hpp"

namespace tessera::train {
namespace {

using host::HostLayer;
using testing::AllOf;
using testing::HasSubstr;

struct SavedRun {
  std::unique_ptr<Executor> executor = make_executor(1);
  DataSet data = test::small_data();
  Network<HostLayer> network;
  Trainer<HostLayer> trainer;

  explicit SavedRun(const TrainOptions& options = test::small_options(RigL{}),
                    const NetworkOptions& shape = test::small_network({4, 4}))
      : network(shape, host_layers(*executor), *executor), trainer(network, data, options) {}
  void steps(int count) {
    for (int i = 0; i < count; ++i) trainer.step();
  }
};

TEST(Checkpoint, GoesOnWithTheBitsOfAnUnbrokenRunFromAnyStep) {
  for (const Method& method : {Method(RigL{}), Method(Set{}), Method(Sampled{})}) {
    TrainOptions options = test::small_options(method);
    options.optimiser.rule = AdamW{};
    options.optimiser.weight_decay = 0;
    SavedRun unbroken(options);
    for (int e = 0; e < 2; ++e) unbroken.trainer.epoch();
    for (const int step : {0, 1, 3, 5, 11, 12}) {
      SavedRun first(options), second(options);
      first.steps(step);
      restore(second.trainer, checkpoint_of(first.trainer), "saved");
      EXPECT_EQ(test::bits_of(second.trainer), test::bits_of(first.trainer));
      for (int e = 0; e < 2; ++e) second.trainer.epoch();
      EXPECT_EQ(test::bits_of(second.trainer), test::bits_of(unbroken.trainer))
          << name_of(method) << ", step " << step;
    }
  }
}

TEST(Checkpoint, IsAFileThatOtherReadersRead) {
  SavedRun run;
  run.steps(3);
  const std::string bytes = checkpoint_of(run.trainer);
  EXPECT_EQ(bytes, checkpoint_of(run.trainer));
  const io::Array bias = io::read_safetensors(bytes, "saved", "layer1.bias");
  EXPECT_EQ(bias.values, std::vector<double>(run.network.state(0).bias.begin(),
                                             run.network.state(0).bias.end()));
  EXPECT_EQ(io::read_safetensors_notes(bytes, "saved")[0].second, "schema 2");
}

TEST(Checkpoint, OfAnotherRunIsRefusedWithWhatDiffers) {
  SavedRun run;
  run.steps(4);
  const std::string bytes = checkpoint_of(run.trainer);
  const auto refusal = [&](const TrainOptions& options, const NetworkOptions& shape) {
    SavedRun other(options, shape);
    const std::vector<double> before = test::bits_of(other.trainer);
    const std::string message =
        test::message_of([&] { restore(other.trainer, bytes, "saved.safetensors"); });
    EXPECT_EQ(test::bits_of(other.trainer), before);
    return message;
  };
  NetworkOptions shape = test::small_network({4, 4});
  shape.seed = 4;
  EXPECT_THAT(refusal(test::small_options(RigL{}), shape),
              AllOf(HasSubstr("saved.safetensors"), HasSubstr("seed 3"), HasSubstr("seed 4")));
  EXPECT_THAT(refusal(test::small_options(Set{}), test::small_network({4, 4})),
              AllOf(HasSubstr("rigl"), HasSubstr("set")));
}

TEST(Checkpoint, IsRefusedWhereverItIsCutAndLeavesTheRunAlone) {
  SavedRun run, other;
  run.steps(4);
  const std::string bytes = checkpoint_of(run.trainer);
  const std::vector<double> before = test::bits_of(other.trainer);
  for (std::size_t n = 0; n < bytes.size(); n += 1 + n / 7)
    EXPECT_THROW(restore(other.trainer, bytes.substr(0, n), "cut"), Error) << n;
  EXPECT_EQ(test::bits_of(other.trainer), before);
}

// Replaces the bytes of one tensor.
std::string with_tensor(const std::string& bytes, const std::string& tensor,
                        const std::string& content) {
  std::string changed = bytes;
  for (const io::TensorInfo& info : io::list_safetensors(bytes, "saved"))
    if (info.name == tensor) {
      const std::size_t data = 8 + std::size_t(static_cast<unsigned char>(bytes[0])) +
                               256 * std::size_t(static_cast<unsigned char>(bytes[1]));
      changed.replace(data + std::size_t(info.begin), content.size(), content);
    }
  return changed;
}

TEST(Checkpoint, WithAnIllegalPatternOrStepIsRefused) {
  SavedRun run, other;
  run.steps(4);
  const std::string bytes = checkpoint_of(run.trainer);
  const std::vector<double> before = test::bits_of(other.trainer);
  const auto refusal = [&](const std::string& tensor, const std::string& content) {
    const std::string changed = with_tensor(bytes, tensor, content);
    EXPECT_NE(changed, bytes);
    return test::message_of([&] { restore(other.trainer, changed, "saved"); });
  };
  EXPECT_THAT(refusal("layer2.col", std::string(4, '\x7f')), HasSubstr("layer 2"));
  EXPECT_THAT(refusal("layer1.row_begin", std::string(8, '\x01')), HasSubstr("saved"));
  EXPECT_THAT(refusal("run", std::string(8, '\x7f')), HasSubstr("the number of steps"));
  EXPECT_THAT(refusal("layer3.ever_active", std::string(6, '\xff')),
              HasSubstr("more places were ever stored than there are"));
  EXPECT_EQ(test::bits_of(other.trainer), before);
}

TEST(Checkpoint, ThatIsNoneIsRefused) {
  SavedRun run;
  const auto refusal = [&](const std::string& bytes) {
    return test::message_of([&] { restore(run.trainer, bytes, "other"); });
  };
  EXPECT_THAT(refusal(io::write_safetensors({}, {})), HasSubstr("this is no checkpoint"));
  EXPECT_THAT(refusal(io::write_safetensors({}, {{"tessera_checkpoint", "schema 3"}})),
              AllOf(HasSubstr("schema 3"), HasSubstr("schema 2")));
  EXPECT_THAT(refusal("nonsense"), HasSubstr("other"));
}

}  // namespace
}  // namespace tessera::train
