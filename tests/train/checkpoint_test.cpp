#include "tessera/train/checkpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tessera/base/file.hpp"
#include "tessera/base/write_file.hpp"
#include "tessera/io/archive.hpp"
#include "tessera/io/array.hpp"
#include "tessera/tests/support/archives.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/tests/support/temporary_folder.hpp"
#include "tessera/tests/train/training_case.hpp"
#include "tessera/train/internal/option_text.hpp"

namespace tessera::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct SavedRun {
  std::unique_ptr<Executor> executor = make_executor(1);
  DataSet data = test::small_data();
  Network<> network;
  Trainer trainer;

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

// Replaces bytes of one list, under a right checksum.
std::string with_list(std::string bytes, const std::string& list, std::size_t at,
                      const std::string& content) {
  for (const io::TensorInfo& info : io::list_safetensors(bytes, "saved"))
    if (info.name == list)
      bytes.replace(std::size_t(io::safetensors_data_begin(bytes, "saved") + info.begin) + at,
                    content.size(), content);
  return test::sealed(bytes);
}

std::string bytes_of(double number) {
  std::string bytes(sizeof(number), '\0');
  std::memcpy(bytes.data(), &number, sizeof(number));
  return bytes;
}

class ChangedCheckpoint : public testing::Test {
 protected:
  ChangedCheckpoint() {
    for (int e = 0; e < 2; ++e) run_.trainer.epoch();
    run_.steps(4);
    bytes_ = checkpoint_of(run_.trainer);
  }

  // Returns the message; another run must stay as it is.
  std::string refusal(const std::string& changed) {
    EXPECT_NE(changed, bytes_);
    const std::vector<double> before = test::bits_of(other_.trainer);
    const std::string message =
        test::message_of([&] { restore(other_.trainer, changed, "saved"); });
    EXPECT_EQ(test::bits_of(other_.trainer), before);
    return message;
  }
  std::string list(const std::string& name, std::size_t at, const std::string& content) {
    return refusal(with_list(bytes_, name, at, content));
  }
  // Replaces a number of the head by one that has as many digits.
  std::string head(const std::string& key, const std::string& now) {
    const std::string start = "\\\"" + key + "\\\":";
    const std::size_t at = bytes_.find(start);
    EXPECT_NE(at, bytes_.npos) << key;
    return refusal(
        test::with_text(bytes_, bytes_.substr(at, start.size() + now.size()), start + now));
  }

  SavedRun run_, other_;
  std::string bytes_;
};

TEST_F(ChangedCheckpoint, WithAnIllegalPatternIsRefused) {
  EXPECT_THAT(list("layer2.col", 0, std::string(4, '\x7f')), HasSubstr("layer 2"));
  EXPECT_THAT(list("layer1.row_begin", 0, std::string(8, '\x01')), HasSubstr("saved: layer 1"));
  EXPECT_THAT(list("layer3.ever_active", 0, std::string(6, '\xff')),
              HasSubstr("more places were ever stored than there are"));
  EXPECT_THAT(list("layer1.ever_active", 1, std::string(1, '\0')),
              HasSubstr("layer 1: places 8 to 15 are stored and were never stored"));
}

TEST_F(ChangedCheckpoint, WithNumbersThatAreNotFiniteIsRefused) {
  const std::string nan = std::string("\0\0\xc0\x7f", 4);
  for (const char* name : {"layer1.values", "layer2.bias", "layer1.state1", "layer3.bias_state1"})
    EXPECT_THAT(list(name, 4, nan), HasSubstr("saved: number 1 of list " + std::string(name)));
  EXPECT_THAT(list("epochs.loss", 0, bytes_of(INFINITY)),
              HasSubstr("number 0 of list epochs.loss is not finite"));
}

TEST_F(ChangedCheckpoint, WithFiguresThatContradictEachOtherIsRefused) {
  const std::int64_t steps = run_.trainer.report().steps;
  ASSERT_TRUE(steps >= 10 && steps < 100);
  EXPECT_THAT(head("steps", "09"), HasSubstr("not JSON"));
  EXPECT_THAT(head("steps", "99"), HasSubstr("the number of optimiser's steps is"));
  EXPECT_THAT(head("steps", "-1"), HasSubstr("field steps is -1"));
  EXPECT_THAT(head("steps", "10"), HasSubstr("an epoch is 1"));
  EXPECT_THAT(head("optimiser_steps", "10"), HasSubstr("the number of optimiser's steps is 10"));
  EXPECT_THAT(list("epochs.epoch", 0, std::string(1, '\2')), HasSubstr("an epoch is 2"));
  EXPECT_THAT(list("epochs.accuracy", 0, bytes_of(1.5)), HasSubstr("an epoch is 1"));
  EXPECT_THAT(list("rewires.step", 0, std::string(1, '\1')), HasSubstr("does not begin with 0"));
  EXPECT_THAT(list("rewires.step", 8, std::string(1, '\4')),
              HasSubstr("the step of a rewire is 4"));
  EXPECT_THAT(list("rewires.fraction", 8, bytes_of(-1)), HasSubstr("the step of a rewire is 3"));
  EXPECT_THAT(list("rewires.moved", 8, std::string(8, '\xff')),
              HasSubstr("the step of a rewire is 3"));
}

// An optimiser's state may overflow while all weights are finite.
TEST(Checkpoint, OfAStateThatIsNotFiniteIsRefusedAndTheFileBeforeStays) {
  const test::TemporaryFolder folder;
  SavedRun run;
  run.steps(3);
  const std::string before = checkpoint_of(run.trainer);
  const std::string path = folder.write("saved.safetensors", before);
  TrainState state = run.trainer.state();
  state.weights[0].arrays[0][1] = INFINITY;
  run.trainer.set_state(state);
  const auto save = [&] { write_file(path, checkpoint_of(run.trainer)); };
  EXPECT_EQ(test::message_of(save, ErrorCode::InvalidArgument),
            "saving a training run: number 1 of list layer1.state1 is not finite");
  EXPECT_EQ(read_file(path), before);
}

TEST(Checkpoint, ThatIsNoneIsRefused) {
  SavedRun run;
  const auto refusal = [&](const std::string& bytes) {
    return test::message_of([&] { restore(run.trainer, bytes, "other"); });
  };
  EXPECT_THAT(refusal(io::write_safetensors({}, {})), HasSubstr("other: byte 8: this is no state"));
  EXPECT_THAT(refusal(io::Archive("a run on ranks").bytes()),
              HasSubstr("this is \"a run on ranks\" that was saved; \"a training run\" is needed"));
  EXPECT_THAT(refusal("nonsense"), HasSubstr("other"));
}

TEST(OptionText, NamesTheTypeUnlessItIsFloat) {
  NetworkOptions options{.sizes = {8, 4}, .density = 0.5, .batch = 3, .seed = 9};
  EXPECT_THAT(internal::text_of(options), testing::EndsWith("batch 3, seed 9"));
  options.data_type = DataType::BFloat16;
  EXPECT_THAT(internal::text_of(options), testing::EndsWith("batch 3, seed 9, bfloat16"));
}

}  // namespace
}  // namespace tessera::train
