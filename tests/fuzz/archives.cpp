#include "tessera/tests/support/archives.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/io/archive.hpp"
#include "tessera/io/internal/archive_seal.hpp"
#include "tessera/partitioner/saved_weights.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/fuzz/targets.hpp"
#include "tessera/tests/train/training_case.hpp"
#include "tessera/train/checkpoint.hpp"

namespace tessera::fuzz {
namespace {

using partitioner::SavedWeights;

// Returns the file that an input stands for. The first byte says what the rest is: the file, the
// file without its checksum, or changes of a good one under a right checksum: two bytes of place
// and one of content each.
std::string file_of(Input input, const std::string& good) {
  const std::string rest(input.begin() + 1, input.end());
  if (input[0] % 2 == 0)
    return input[0] % 4 == 2 && std::ssize(rest) >= io::internal::kSealEnd ? test::sealed(rest)
                                                                           : rest;
  std::string file = good;
  for (std::size_t i = 0; i + 2 < rest.size(); i += 3) {
    const auto byte = [&](std::size_t at) {
      return std::size_t(static_cast<unsigned char>(rest[at]));
    };
    file[(256 * byte(i) + byte(i + 1)) % file.size()] = rest[i + 2];
  }
  return test::sealed(file);
}

// A state with fields and lists of most kinds.
struct State {
  bool flag = true;
  std::int64_t whole = 7;
  double number = 0.5;
  std::string text = "text";
  std::vector<double> table{1, 2, 3, 4};
  std::vector<Half> halves{Half(1.0f)};
  std::vector<std::vector<std::int32_t>> parts{{1, 2}, {}};
};

void describe(io::Archive& archive, State& s) {
  archive.flag("flag", s.flag);
  archive.whole("whole", s.whole, {0, 1 << 30});
  archive.number("number", s.number);
  archive.text("text", s.text);
  archive.list("table", s.table, {io::Archive::kAnyCount, 2});
  archive.list("halves", s.halves, {1});
  archive.items("part", s.parts, {0, 1 << 30},
                [&](std::vector<std::int32_t>& part) { archive.list("places", part); });
}

// A small layer of two groups with weights.
struct SavedLayer {
  Problem problem{.size = {2, 12, 10, 4},
                  .block = {1, 1},
                  .density = 0.3,
                  .data_type = DataType::Half,
                  .grad_a = true,
                  .grad_w = true};
  std::unique_ptr<Executor> executor = make_executor(1);
  runtime::FullyConnected layer = make();
  std::string good = test::saved_file(layer.saved_weights());

  runtime::FullyConnected make() const {
    device::Machine machine = device::machine_preset("gc200");
    machine.tiles = 8;
    planner::Options options;
    options.constraints.use_dense = false;
    options.meta_info_bucket_oversize_proportion = 1;
    runtime::FullyConnected made(problem, planner::plan_or_throw(problem, machine, options),
                                 machine, device::ExchangeMode::Share, *executor);
    const std::vector<sparse::Csr<float>> weights{sparse::random_pattern(12, 10, {1, 1}, 0.3, 1),
                                                  sparse::random_pattern(12, 10, {1, 1}, 0.3, 2)};
    require(!made.set_weights(sparse::checked(weights)), "the weights fit");
    return made;
  }
};

// A run of four steps on pictures of 20 pixels.
struct FuzzedRun {
  std::unique_ptr<Executor> executor = make_executor(1);
  train::DataSet data = test::small_data();
  train::Network<> network{test::small_network({4, 4}), train::host_layers(*executor), *executor};
  train::Trainer trainer{network, data, test::small_options(train::RigL{})};

  FuzzedRun() {
    for (int i = 0; i < 4; ++i) trainer.step();  // the third rewires
  }
};

}  // namespace

void archive(Input input) {
  if (input.empty()) return;
  static const std::string good = test::saved_file(State());
  const std::string file = file_of(input, good);
  State state{.table = {}, .halves = {}, .parts = {}};
  if (!accepts([&] {
        const auto read = io::Archive::of_bytes(file, "input", "a state");
        describe(*read, state);
        read->finish();
      }))
    return;
  const std::string again = test::saved_file(state);
  require(test::saved_file(test::state_of<State>(again, "again")) == again,
          "a state that is read is written and read again");
}

void saved_weights(Input input) {
  if (input.empty()) return;
  static SavedLayer saved;
  const std::string file = file_of(input, saved.good);
  const sparse::Csr<float> before = saved.layer.weights(1);
  SavedWeights read;
  if (!accepts([&] { read = test::state_of<SavedWeights>(file, "input"); })) return;
  if (accepts([&] { saved.layer.restore_weights(read); }))
    saved.layer.restore_weights(test::state_of<SavedWeights>(saved.good, "good"));
  else
    require(saved.layer.weights(1) == before, "weights that are refused change nothing");
}

void checkpoint(Input input) {
  if (input.empty()) return;
  static FuzzedRun run;
  static const std::string good = train::checkpoint_of(run.trainer);
  const std::string file = file_of(input, good);
  const std::vector<double> before = test::bits_of(run.trainer);
  if (accepts([&] { train::restore(run.trainer, file, "input"); })) {
    accepts([&] { run.trainer.step(); });
    train::restore(run.trainer, good, "good");
  } else {
    require(test::bits_of(run.trainer) == before, "a checkpoint that is refused changes nothing");
  }
}

}  // namespace tessera::fuzz
