#include <algorithm>
#include <string>

#include "tessera/tests/fuzz/input_bytes.hpp"
#include "tessera/tests/fuzz/targets.hpp"
#include "tessera/tests/train/training_case.hpp"
#include "tessera/train/checkpoint.hpp"

namespace tessera::fuzz {
namespace {

// A run of four steps on pictures of 20 pixels.
struct FuzzedRun {
  std::unique_ptr<Executor> executor = make_executor(1);
  train::DataSet data = test::small_data();
  train::Network<host::HostLayer> network{test::small_network({4, 4}),
                                          train::host_layers(*executor), *executor};
  train::Trainer<host::HostLayer> trainer{network, data, test::small_options(train::RigL{})};

  FuzzedRun() {
    for (int i = 0; i < 4; ++i) trainer.step();  // the third rewires
  }
};

}  // namespace

// The first byte says whether the rest is the file, or changes of a good one: two bytes of place
// and one of content each.
void checkpoint(Input input) {
  if (input.empty()) return;
  static FuzzedRun run;
  static const std::string good = train::checkpoint_of(run.trainer);
  std::string bytes(input.begin() + 1, input.end());
  if (input[0] % 2 == 1) {
    std::string changed = good;
    for (std::size_t i = 0; i + 2 < bytes.size(); i += 3) {
      const auto byte = [&](std::size_t at) {
        return std::size_t(static_cast<unsigned char>(bytes[at]));
      };
      changed[(256 * byte(i) + byte(i + 1)) % changed.size()] = bytes[i + 2];
    }
    bytes = changed;
  }
  const std::vector<double> before = test::bits_of(run.trainer);
  if (accepts([&] { train::restore(run.trainer, bytes, "input"); })) {
    accepts([&] { run.trainer.step(); });
    train::restore(run.trainer, good, "good");
  } else {
    const std::vector<double> after = test::bits_of(run.trainer);
    // Bit for bit, as a value may be NaN.
    require(before.size() == after.size() &&
                std::equal(before.begin(), before.end(), after.begin(),
                           [](double a, double b) { return a == b || (a != a && b != b); }),
            "a checkpoint that is refused changes nothing");
  }
}

}  // namespace tessera::fuzz
