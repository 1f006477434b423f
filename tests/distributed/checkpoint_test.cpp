// Checkpoints: restart on another number of ranks, files that are cut or changed, and writers that
// are killed.

#include "tessera/distributed/checkpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "tessera/base/file.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/distributed/layer.hpp"
#include "tessera/distributed/thread_ranks.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/io/archive.hpp"
#include "tessera/sparse/part.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/archives.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/tests/support/temporary_folder.hpp"
#include "tessera/train/optim/values.hpp"

namespace tessera::distributed {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;
using testing::AllOf;
using testing::HasSubstr;

const host::HostCpu kTiny{.cores = 2, .l1_data = Bytes(2048), .l2 = Bytes(16384), .l3 = Bytes()};

// The state of a whole run: two layers, one of them in blocks, with values that depend on the step.
std::vector<sparse::Csr<float>> matrices(std::int64_t step) {
  std::vector<sparse::Csr<float>> all{sparse::random_pattern(50, 30, {1, 1}, 0.3, 1),
                                      sparse::random_pattern(24, 50, {4, 2}, 0.3, 2)};
  for (auto& matrix : all)
    for (std::size_t i = 0; i < matrix.values.size(); ++i)
      matrix.values[i] = float(step) + float(i) / 1024;
  return all;
}

RunState part_of(std::int64_t step, int rank, int ranks) {
  RunState state{step, {}};
  for (const auto& matrix : matrices(step)) {
    const RowCut cut = cut_evenly(matrix.row_begin, matrix.rows, matrix.block.rows, ranks);
    LayerState layer{cut, rows_of(matrix, cut.of(rank)), {}};
    layer.slots = {layer.rows.values, layer.rows.values};
    for (float& v : layer.slots[1]) v = -v;
    state.layers.push_back(std::move(layer));
  }
  return state;
}

void write(const std::string& path, std::int64_t step, int count) {
  run_ranks(count, [&](Communicator& ranks) {
    write_checkpoint(ranks, path, part_of(step, ranks.rank(), count));
  });
}

// Reads a checkpoint on `count` ranks and returns its step; all ranks must have what was written.
std::int64_t read_and_compare(const std::string& path, int count) {
  std::int64_t step = -1;
  run_ranks(count, [&](Communicator& ranks) {
    const RunState state = read_checkpoint(ranks, path);
    EXPECT_EQ(state, part_of(state.step, ranks.rank(), count)) << count << " ranks";
    if (ranks.rank() == 0) step = state.step;
  });
  return step;
}

TEST(Checkpoint, IsReadOnAnyNumberOfRanks) {
  const TemporaryFolder folder;
  std::int64_t step = 0;
  std::string of_one;
  for (const int writers : {1, 2, 3, 5}) {
    write(folder / "run", ++step, writers);
    for (const int readers : {1, 2, 3, 4, 8, 20})
      EXPECT_EQ(read_and_compare(folder / "run", readers), step) << writers << " writers";
    write(folder / "again", 1, writers);
    const std::string bytes = read_file(folder / "again");
    if (writers == 1) of_one = bytes;
    EXPECT_EQ(bytes, of_one) << writers << " writers";
  }
}

TEST(Checkpoint, IsThereWhenAnyRankGoesOn) {
  const TemporaryFolder folder;
  run_ranks(4, [&](Communicator& ranks) {
    for (int step = 0; step < 10; ++step) {
      const std::string path = folder / std::to_string(step);
      write_checkpoint(ranks, path, part_of(step, ranks.rank(), ranks.size()));
      EXPECT_TRUE(fs::exists(path)) << "rank " << ranks.rank();
    }
  });
}

std::string refusal_of(const std::string& path) {
  return test::message_of(
      [&] { run_ranks(2, [&](Communicator& ranks) { read_checkpoint(ranks, path); }); });
}

TEST(Checkpoint, AFileThatIsCutAnywhereIsRefusedByName) {
  const TemporaryFolder folder;
  const std::string path = folder / "run";
  write(path, 1, 2);
  const std::string whole = read_file(path);
  for (std::size_t bytes = 0; bytes + 2 < whole.size(); bytes += 256) {
    write_file(path, whole.substr(0, bytes), ForceToDisk::No);
    EXPECT_THAT(refusal_of(path), HasSubstr(path));
  }
  write_file(path, whole + "x", ForceToDisk::No);
  EXPECT_THAT(refusal_of(path), HasSubstr(path));
  fs::remove(path);
  EXPECT_THAT(refusal_of(path), HasSubstr(path));
}

TEST(Checkpoint, AChangedByteIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder / "run";
  write(path, 1, 2);
  const std::string whole = read_file(path);
  for (std::size_t at = 0; at < whole.size(); at += 211) {
    std::string changed = whole;
    changed[at] = char(changed[at] ^ 1);
    write_file(path, changed, ForceToDisk::No);
    EXPECT_THAT(refusal_of(path), HasSubstr(path));
  }
}

TEST(Checkpoint, AFileThatContradictsItselfIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder / "run";
  write(path, 1, 2);
  const std::string whole = read_file(path);
  const auto with = [&](const std::string& old, const std::string& now) {
    write_file(path, test::with_text(whole, old, now), ForceToDisk::No);
    return refusal_of(path);
  };
  EXPECT_THAT(with(R"(layer2.block_rows\":4)", R"(layer2.block_rows\":2)"),
              HasSubstr("list layer2.row_begin has the type I64 and the shape"));
  EXPECT_THAT(with(R"(layer2.block_cols\":2)", R"(layer2.block_cols\":0)"),
              HasSubstr("layer2.block_cols is 0"));
  EXPECT_THAT(with(R"(layer1.slots\":2)", R"(layer1.slots\":3)"),
              HasSubstr("list layer1.slot3 is missing"));
  EXPECT_THAT(with(R"(layer1.slots\":2)", R"(layer1.slots\":1)"),
              HasSubstr("list \"layer1.slot2\" is not known"));
  EXPECT_THAT(with(R"(layer1.cols\":30)", R"(layer1.cols\":10)"),
              AllOf(HasSubstr("layer 1: "), HasSubstr("column")));
  EXPECT_THAT(with(R"(tessera_archive":"1")", R"(tessera_archive":"9")"), HasSubstr("version"));
  EXPECT_THAT(with(R"(\"step\":1)", R"(\"step\":-)"), HasSubstr("not JSON"));
}

TEST(Checkpoint, PositionsOfRowsThatDoNotAscendAreRefused) {
  const TemporaryFolder folder;
  const std::string path = folder / "run";
  for (const std::int64_t first : {1, 0}) {
    io::Archive archive("a run on ranks");
    std::int64_t step = 1, layers = 1, lines = 2, side = 1, slots = 0;
    std::vector<std::int64_t> row_begin{first, 2, 1};
    archive.whole("step", step, {0, 1});
    archive.whole("layers", layers, {0, 1});
    archive.within("layer1", [&] {
      for (const char* const name : {"rows", "cols"}) archive.whole(name, lines, {0, 2});
      for (const char* const name : {"block_rows", "block_cols"}) archive.whole(name, side, {1, 1});
      archive.whole("slots", slots, {0, 0});
      archive.list("row_begin", row_begin);
    });
    write_file(path, archive.bytes());
    EXPECT_THAT(refusal_of(path), HasSubstr("row_begin of a layer does not ascend from 0"));
  }
}

TEST(Checkpoint, SlotsOfAnotherLengthAreRefused) {
  const TemporaryFolder folder;
  const std::string message = test::refusal([&] {
    run_ranks(2, [&](Communicator& ranks) {
      RunState state = part_of(1, ranks.rank(), 2);
      state.layers[0].slots[1].pop_back();
      write_checkpoint(ranks, folder / "run", state);
    });
  });
  EXPECT_THAT(message, HasSubstr("list layer1.slot2 has the type F32 and the shape"));
}

TEST(Checkpoint, AStateThatIsNotFiniteIsRefusedAndTheOneBeforeStays) {
  const TemporaryFolder folder;
  const auto write = [&](std::int64_t step, float value) {
    run_ranks(2, [&](Communicator& ranks) {
      RunState state = part_of(step, ranks.rank(), 2);
      if (ranks.rank() == 1) state.layers[1].slots[0][3] *= value;
      write_checkpoint(ranks, folder / "run", state);
    });
  };
  write(1, 1);
  const std::string message =
      test::refusal([&] { write(2, std::numeric_limits<float>::infinity()); });
  EXPECT_THAT(message, HasSubstr("of list layer2.slot1 is not finite"));
  run_ranks(
      2, [&](Communicator& ranks) { EXPECT_EQ(read_checkpoint(ranks, folder / "run").step, 1); });
}

// A process that writes checkpoints without an end is killed at some moment, several times.
TEST(Checkpoint, AKilledWriterLeavesAWholeOne) {
  const TemporaryFolder folder;
  std::int64_t before = 0;
  write(folder / "run", before, 2);
  for (int turn = 1; turn <= 8; ++turn) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        for (std::int64_t step = before + 1;; ++step) write(folder / "run", step, 1 + turn % 3);
      } catch (...) {
        ::_exit(1);
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(1500 * turn));
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    const std::int64_t step = read_and_compare(folder / "run", 2);
    EXPECT_GE(step, before);
    before = step;
  }
}

// Two steps on four ranks, a restart on `readers`, one more step.
TEST(Checkpoint, ARunGoesOnWithTheSameBitsOnAnotherNumberOfRanks) {
  const Problem problem{.size = {1, 60, 40, 30},
                        .density = 0.3,
                        .data_type = DataType::Float,
                        .grad_a = true,
                        .grad_w = true};
  const train::Optimiser optimiser{train::Adam{}};
  const auto weights = sparse::random_pattern(60, 40, {1, 1}, 0.3, 1);
  const auto s = random_matrix<float>(40, 30, 2), q_grad = random_matrix<float>(60, 30, 3);
  const auto step = [&](RankLayer& layer, train::ValueState<float>& state) {
    const auto part = [](const Matrix<float>& whole, Range rows) {
      return whole.view().sub(rows, {0, whole.cols()});
    };
    std::vector<float> gradients(std::size_t(layer.values()));
    layer.grad_w<float>(part(q_grad, layer.outputs()), part(s, layer.inputs()), gradients);
    layer.change_values(train::ValueStep<float>(optimiser, gradients, state));
  };
  const TemporaryFolder folder;
  const RowCut outputs = cut_evenly(weights.row_begin, 60, 1, 4);
  std::vector<float> expected(weights.values.size());
  run_ranks(4, [&](Communicator& ranks) {
    const auto executor = make_executor(1);
    RankLayer layer(problem, kTiny, *executor, ranks);
    layer.set_rows(outputs, rows_of(weights, outputs.of(ranks.rank())));
    auto state = train::make_value_state<float>(optimiser, layer.values());
    for (int i = 0; i < 3; ++i) {
      if (i == 2)
        write_checkpoint(ranks, folder / "run",
                         {state.steps, {{outputs, layer.weights(), state.arrays}}});
      step(layer, state);
    }
    const std::int64_t first = weights.row_begin[std::size_t(layer.outputs().begin)];
    std::copy(layer.weights().values.begin(), layer.weights().values.end(),
              expected.begin() + first);
  });
  for (const int readers : {1, 3, 5})
    run_ranks(readers, [&](Communicator& ranks) {
      const auto executor = make_executor(1);
      RunState saved = read_checkpoint(ranks, folder / "run");
      RankLayer layer(problem, kTiny, *executor, ranks);
      layer.set_rows(saved.layers[0].outputs, saved.layers[0].rows);
      train::ValueState<float> state{saved.step, saved.layers[0].slots};
      step(layer, state);
      const auto first = expected.begin() + weights.row_begin[std::size_t(layer.outputs().begin)];
      EXPECT_EQ(layer.weights().values, std::vector<float>(first, first + layer.values()))
          << readers << " readers";
    });
}

}  // namespace
}  // namespace tessera::distributed
