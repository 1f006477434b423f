// Trains a sparse layer on several ranks: three steps on three ranks, a checkpoint, and two more
// steps on two ranks, beside five steps on one rank. Then three steps whose batch is split over the
// ranks. The weights must have the same bits. Ranks are threads here; a program for mpirun calls
// run_mpi_rank (distributed/mpi_ranks.hpp) instead.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/file.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/distributed/checkpoint.hpp"
#include "tessera/distributed/files.hpp"
#include "tessera/distributed/layer.hpp"
#include "tessera/distributed/thread_ranks.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/io/write.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/train/optim/values.hpp"

namespace {

using namespace tessera;
using distributed::Communicator;

constexpr std::int64_t kOutputs = 300, kInputs = 200, kBatch = 64;
const Problem kProblem{.size = {1, kOutputs, kInputs, kBatch},
                       .density = 0.1,
                       .data_type = DataType::Float,
                       .grad_a = true,
                       .grad_w = true};
const train::Optimiser kOptimiser{train::Adam{}};

sparse::Csr<float> weights() { return sparse::random_pattern(kOutputs, kInputs, {1, 1}, 0.1, 1); }

// The steps [first, end) of one rank. It begins with the file of weights, or with a checkpoint, and
// leaves a checkpoint.
void run(Communicator& ranks, const std::string& file, const std::string& saved_run,
         std::int64_t first, std::int64_t end) {
  const auto executor = make_executor(1);
  distributed::RankLayer layer(kProblem, host::read_host_cpu(), *executor, ranks);
  train::ValueState<float> state;
  distributed::RowCut outputs;  // of all ranks
  if (first == 0) {
    const distributed::FileRows own = distributed::read_own_rows(ranks, file);
    outputs = own.outputs;
    layer.set_rows(outputs, own.rows);
    state = train::make_value_state<float>(kOptimiser, layer.values());
  } else {
    const distributed::RunState saved = distributed::read_checkpoint(ranks, saved_run);
    outputs = saved.layers[0].outputs;
    layer.set_rows(outputs, saved.layers[0].rows);
    state = {saved.step, saved.layers[0].slots};
  }
  const Range rows = layer.outputs(), cols = layer.inputs();
  Matrix<float> q(rows.size(), kBatch), s_gradient(cols.size(), kBatch);
  std::vector<float> gradients(static_cast<std::size_t>(layer.values()));
  for (std::int64_t step = first; step < end; ++step) {
    // The batch is the same for any number of ranks; each takes its rows of it.
    const Matrix<float> s =
        random_matrix<float>(kInputs, kBatch, static_cast<std::uint64_t>(100 + step));
    const MatrixView<const float> own_s = s.view().sub(cols, {0, kBatch});
    layer.forward<float>(own_s, q.view());
    // The loss is half the square of Q, so dQ is Q.
    const MatrixView<const float> q_gradient = q.view();
    layer.grad_a<float>(q_gradient, s_gradient.view());
    layer.grad_w<float>(q_gradient, own_s, gradients);
    layer.change_values(train::ValueStep<float>(kOptimiser, gradients, state));
  }
  write_checkpoint(ranks, saved_run, {state.steps, {{outputs, layer.weights(), state.arrays}}});
}

// Returns the weights after three steps of ranks that have all weights and split the batch.
std::vector<float> split_batch(int count) {
  std::vector<float> values;
  distributed::run_ranks(count, [&](Communicator& ranks) {
    const auto executor = make_executor(1);
    distributed::RankLayer layer(kProblem, host::read_host_cpu(), *executor, ranks,
                                 {.leaves = distributed::kLeaves});
    layer.set_weights(sparse::checked(weights()));
    train::ValueState<float> state = train::make_value_state<float>(kOptimiser, layer.values());
    const Range columns = layer.columns_of_batch();
    Matrix<float> q(kOutputs, columns.size());
    std::vector<float> gradients(static_cast<std::size_t>(layer.values()));
    for (std::uint64_t step = 0; step < 3; ++step) {
      const Matrix<float> s = random_matrix<float>(kInputs, kBatch, 100 + step);
      const MatrixView<const float> own_s = s.view().sub({0, kInputs}, columns);
      layer.forward<float>(own_s, q.view());
      layer.grad_w<float>(std::as_const(q).view(), own_s, gradients);
      layer.change_values(train::ValueStep<float>(kOptimiser, gradients, state));
    }
    if (ranks.rank() == 0) values = layer.weights().values;
  });
  return values;
}

std::vector<float> values_of(const std::string& saved_run) {
  std::vector<float> values;
  distributed::run_ranks(1, [&](Communicator& ranks) {
    values = distributed::read_checkpoint(ranks, saved_run).layers[0].rows.values;
  });
  return values;
}

}  // namespace

int main() {
  namespace fs = std::filesystem;
  std::string pattern = (fs::temp_directory_path() / "several-ranks-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) return 1;
  const fs::path folder = pattern;
  const std::string file = folder / "weights.mtx", alone = folder / "alone.safetensors",
                    spread = folder / "spread.safetensors";
  write_file(file, io::write_mtx(weights()));
  const auto on = [&](int ranks, const std::string& to, std::int64_t first, std::int64_t end) {
    distributed::run_ranks(ranks, [&](Communicator& all) { run(all, file, to, first, end); });
  };
  on(1, alone, 0, 5);
  on(3, spread, 0, 3);
  on(2, spread, 3, 5);
  const bool same = values_of(alone) == values_of(spread);
  std::printf("5 steps on 1 rank, and 3 on 3 ranks and 2 on 2 ranks: %s\n",
              same ? "the same bits" : "OTHER BITS");
  const bool same_split = split_batch(1) == split_batch(3);
  std::printf("3 steps with the batch on 1 rank and on 3 ranks: %s\n",
              same_split ? "the same bits" : "OTHER BITS");
  fs::remove_all(folder);
  return same && same_split ? 0 : 1;
}
