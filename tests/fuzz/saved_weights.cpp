#include "tessera/partitioner/saved_weights.hpp"

#include <boost/crc.hpp>
#include <cstring>
#include <string>

#include "tessera/base/executor.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/fuzz/input_bytes.hpp"
#include "tessera/tests/fuzz/targets.hpp"

namespace tessera::fuzz {
namespace {

constexpr std::size_t kChecksumAt = 12, kBodyAt = 24;  // in the file

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
  std::string good = partitioner::write_saved_weights(layer.saved_weights());

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
    require(!made.set_weights(weights), "the weights fit");
    return made;
  }
};

// Changes bytes of the body and makes the checksum right again: two bytes of place and one of
// content each.
std::string changed(std::string file, std::string_view changes) {
  for (std::size_t i = 0; i + 2 < changes.size(); i += 3) {
    const auto byte = [&](std::size_t at) {
      return std::size_t(static_cast<unsigned char>(changes[at]));
    };
    file[kBodyAt + (256 * byte(i) + byte(i + 1)) % (file.size() - kBodyAt)] = changes[i + 2];
  }
  boost::crc_32_type sum;
  sum.process_bytes(file.data() + kBodyAt, file.size() - kBodyAt);
  const std::uint32_t checksum = sum.checksum();
  std::memcpy(file.data() + kChecksumAt, &checksum, sizeof(checksum));
  return file;
}

}  // namespace

// The first byte says whether the rest is the file, or changes of a good one.
void saved_weights(Input input) {
  if (input.empty()) return;
  static SavedLayer saved;
  const std::string rest(input.begin() + 1, input.end());
  const std::string file = input[0] % 2 == 1 ? changed(saved.good, rest) : rest;
  const sparse::Csr<float> before = saved.layer.weights(1);
  partitioner::SavedWeights read;
  if (!accepts([&] { read = partitioner::read_saved_weights(file, "input"); })) return;
  require(partitioner::write_saved_weights(read) == file, "a file that is read is written again");
  if (accepts([&] { saved.layer.restore_weights(read); })) {
    require(partitioner::write_saved_weights(saved.layer.saved_weights()).size() <= file.size(),
            "the layer holds what the file had");
    saved.layer.restore_weights(partitioner::read_saved_weights(saved.good, "good"));
  } else {
    require(saved.layer.weights(1) == before, "weights that are refused change nothing");
  }
}

}  // namespace tessera::fuzz
