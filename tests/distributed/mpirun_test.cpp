// Ranks that are processes, started by mpirun.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/file.hpp"
#include "tessera/base/random.hpp"
#include "tessera/io/npz.hpp"
#include "tessera/io/write.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/process.hpp"
#include "tessera/tests/support/temporary_folder.hpp"
#include "tessera/tests/tools/training_files.hpp"
#include "tessera/tests/train/training_case.hpp"

namespace tessera::distributed {
namespace {

#ifdef TESSERA_ONE_RANK
constexpr const char* kMpirun = TESSERA_MPIRUN;
constexpr const char* kOneRank = TESSERA_ONE_RANK;
constexpr const char* kTool = TESSERA_TOOL;
#else
constexpr const char* kMpirun = "";
constexpr const char* kOneRank = "";
constexpr const char* kTool = "";
#endif

class MpiRun : public testing::Test {
 protected:
  // The tests may run as root, in a container of few cores, beside other tests.
  void SetUp() override {
    if (*kOneRank == '\0') GTEST_SKIP() << "built without MPI (libopenmpi-dev, openmpi-bin)";
    // Open MPI 4 reads the last two with OMPI_, version 5 with PRTE_.
    for (const auto& [name, value] : std::initializer_list<std::pair<const char*, const char*>>{
             {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
             {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
             {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
             {"PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"},
             {"OMPI_MCA_hwloc_base_binding_policy", "none"},
             {"PRTE_MCA_hwloc_default_binding_policy", "none"}})
      setenv(name, value, 1);
  }

  test::Outcome run(int ranks, const std::vector<std::string>& arguments,
                    const std::vector<std::string>& program = {kOneRank}) {
    std::vector<std::string> command{kMpirun, "-np", std::to_string(ranks)};
    command.insert(command.end(), program.begin(), program.end());
    command.insert(command.end(), arguments.begin(), arguments.end());
    const auto begin = std::chrono::steady_clock::now();
    const test::Outcome outcome = test::run(command);
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return outcome;
  }

  // Runs one command for each rank; its words hold no single quotes. `mpirun A : B` says the same,
  // but mpirun of Open MPI 5.0.7 (Debian 13) crashes on the colon.
  test::Outcome run_each(const std::vector<std::vector<std::string>>& commands) {
    std::string script = "case $OMPI_COMM_WORLD_RANK in ";
    for (std::size_t rank = 0; rank < commands.size(); ++rank) {
      script += std::to_string(rank) + ") exec";
      for (const std::string& word : commands[rank]) script += " '" + word + "'";
      script += ";; ";
    }
    return run(int(commands.size()), {}, {"sh", "-c", script + "esac"});
  }

  double seconds_ = 0;  // of the last run
};

// A run takes half a second on an idle computer and much more on one that compiles beside it.
constexpr double kPatience = 60;

TEST_F(MpiRun, HasTheBitsOfOneProcess) {
  for (const int ranks : {1, 2, 3, 4}) {
    const test::Outcome outcome = run(ranks, {"compare"});
    EXPECT_EQ(outcome.exit, 0) << outcome.out << outcome.err;
    for (int rank = 0; rank < ranks; ++rank)
      EXPECT_NE(outcome.out.find("rank " + std::to_string(rank) + " of " + std::to_string(ranks) +
                                 ": same bits"),
                std::string::npos)
          << outcome.out;
  }
}

TEST_F(MpiRun, AnErrorOfOneRankEndsTheJobWithItsMessageAndExitCode) {
  const test::Outcome outcome = run(3, {"throw", "1"});
  EXPECT_EQ(outcome.exit, 3) << outcome.err;
  EXPECT_NE(outcome.err.find("one_rank: row 7 is not sorted"), std::string::npos) << outcome.err;
  EXPECT_LT(seconds_, kPatience);
}

TEST_F(MpiRun, AKilledRankEndsTheJob) {
  const test::Outcome outcome = run(3, {"kill", "1"});
  EXPECT_EQ(outcome.exit, 137) << outcome.err;
  EXPECT_LT(seconds_, kPatience);
}

TEST_F(MpiRun, ARankThatStandsStillEndsTheJobAndIsNamed) {
  const test::Outcome outcome = run(2, {"stop", "1"});
  EXPECT_EQ(outcome.exit, 3) << outcome.err;
  EXPECT_NE(outcome.err.find("rank 0 of 2: Fwd: rows of S: rank 1 has sent nothing for 2 s"),
            std::string::npos)
      << outcome.err;
  EXPECT_LT(seconds_, kPatience);
}

TEST_F(MpiRun, AMessageThatIsTooShortIsNotTakenForAWholeOne) {
  const test::Outcome outcome = run(2, {"shorten", "1"});
  EXPECT_EQ(outcome.exit, 3) << outcome.err;
  EXPECT_NE(
      outcome.err.find("rank 0 of 2: Fwd: rows of S: rank 1 sent 3 bytes, but 8 were expected"),
      std::string::npos)
      << outcome.err;
}

TEST_F(MpiRun, ARankThatLeavesEarlyIsNoSuccess) {
  const test::Outcome outcome = run(2, {"leave", "1"});
  EXPECT_NE(outcome.exit, 0) << outcome.err;
  EXPECT_LT(seconds_, kPatience);
}

const std::vector<std::string> kLayer{"--input-size", "96",   "--output-size", "120",
                                      "--density",    "0.2",  "--batch-size",  "70",
                                      "--data-type",  "float"};

TEST_F(MpiRun, TheToolPrintsOneReportThatNamesTheRanks) {
  std::vector<std::string> arguments{"run", "--machine", "host"};
  arguments.insert(arguments.end(), kLayer.begin(), kLayer.end());
  const test::Outcome outcome = run(2, arguments, {kTool});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find("PASS"), outcome.out.rfind("PASS")) << outcome.out;
  for (const char* text : {"\n1     Fwd  ", "\n1     GradW  ", "Fwd     ok: 8400 results"})
    EXPECT_NE(outcome.out.find(text), std::string::npos) << outcome.out;
}

TEST_F(MpiRun, TheFirstRankChoosesTheBlockForAll) {
  const test::TemporaryFolder folder;
  const std::string file =
      folder.write("a.mtx", io::write_mtx(sparse::random_pattern(64, 48, {4, 4}, 0.2, 1)));
  const test::Outcome outcome = run(2,
                                    {"run", "--machine", "host", "--matrix", file, "--batch-size",
                                     "64", "--block-size", "auto", "--data-type", "float"},
                                    {kTool});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("block size by forecast: "), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("reads the whole file"), std::string::npos) << outcome.out;
}

// Each rank's clock has another time.
TEST_F(MpiRun, ASeedFromTheClockIsThatOfTheFirstRank) {
  for (const std::vector<std::string>& machine :
       {std::vector<std::string>{"--machine", "host"}, {"--devices", "2"}}) {
    std::vector<std::string> arguments{"run", "--variable-seed"};
    arguments.insert(arguments.end(), machine.begin(), machine.end());
    arguments.insert(arguments.end(), kLayer.begin(), kLayer.end());
    const test::Outcome outcome = run(2, arguments, {kTool});
    EXPECT_EQ(outcome.exit, 0) << outcome.out << outcome.err;
    EXPECT_NE(outcome.out.find("ok: 8400 results"), std::string::npos) << outcome.out;
  }
}

TEST_F(MpiRun, EachRankReadsItsRowsOfAFileAndResultsHaveTheBitsOfOneProcess) {
  const test::TemporaryFolder folder;
  auto matrix = sparse::random_pattern(61, 47, {1, 1}, 0.2, 1);
  Random random(4);
  for (float& value : matrix.values) value = float(2 * random.unit() - 1);
  std::vector<std::string> files{folder.write("a.mtx", io::write_mtx(matrix)),
                                 folder.write("a.smtx", io::write_smtx(matrix))};
  if (io::can_read_npz()) files.push_back(folder.write("a.npz", io::write_npz(matrix)));
  for (const std::string& file : files)
    for (const char* const block : {"1", "4"}) {
      if (file.ends_with(".smtx") && *block == '4') continue;  // a job takes a second
      SCOPED_TRACE(file + ", block " + block);
      const auto arguments = [&](const std::string& out) {
        return std::vector<std::string>{"run",          "--machine",    "host",  "--matrix",
                                        file,           "--block-size", block,   "--batch-size",
                                        "70",           "--data-type",  "float", "--self-check",
                                        "--output-dir", folder / out};
      };
      std::vector<std::string> alone = arguments("alone");
      alone.insert(alone.begin(), kTool);
      EXPECT_EQ(test::run(alone).exit, 0);
      const test::Outcome outcome = run(3, arguments("ranks"), {kTool});
      EXPECT_EQ(outcome.exit, 0) << outcome.err;
      EXPECT_EQ(outcome.out.find("reads the whole file"), std::string::npos) << outcome.out;
      for (const char* name : {"q.npy", "s_gradient.npy", "weight_gradient.npz"})
        EXPECT_EQ(read_file(folder / "ranks" + "/" + name),
                  read_file(folder / "alone" + "/" + name))
            << name;
    }
}

TEST_F(MpiRun, AFileThatIsNotRowByRowIsReadAsAWholeAndTheReportSaysSo) {
  const test::TemporaryFolder folder;
  const std::string file = folder.write(
      "a.mtx", "%%MatrixMarket matrix coordinate real general\n3 3 3\n2 1 1\n1 1 2\n3 3 1\n");
  const test::Outcome outcome = run(
      2,
      {"run", "--machine", "host", "--matrix", file, "--batch-size", "4", "--data-type", "float"},
      {kTool});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("every rank reads the whole file: "), std::string::npos)
      << outcome.out;
}

TEST_F(MpiRun, AModelledPodHasTheReportOfOneProcess) {
  const test::TemporaryFolder folder;
  // Links so fast that it pays to cut a small layer.
  const std::string pod =
      folder.write("pod.json",
                   R"({"name": "fast", "machine": {"base": "bow", "tiles": 8}, "levels": [
        {"kind": "full", "devices": 2, "bytes_per_second": 1e13, "step_seconds": 1e-9,
         "barrier_seconds": 0},
        {"kind": "ring", "devices": 3, "bytes_per_second": 1e13, "step_seconds": 1e-9,
         "barrier_seconds": 0}]})");
  const std::vector<std::string> arguments{
      "run", "--pod",        pod,  "--input-size", "96",    "--output-size", "80", "--density",
      "0.2", "--batch-size", "24", "--self-check", "--json"};
  std::vector<std::string> alone = arguments;
  alone.insert(alone.begin(), kTool);
  const test::Outcome expected = test::run(alone), outcome = run(3, arguments, {kTool});
  EXPECT_EQ(expected.exit, 0) << expected.err;
  EXPECT_NE(expected.out.find("\"device\": 5"), std::string::npos) << expected.out;
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_EQ(outcome.out, expected.out);
}

TEST_F(MpiRun, RanksThatWereGivenOtherFilesSaySoAndCallNoResultWrong) {
  const test::TemporaryFolder folder;
  const auto write = [&](const char* name, std::int64_t rows, std::uint64_t seed) {
    return folder.write(name, io::write_mtx(sparse::random_pattern(rows, 64, {1, 1}, 0.2, seed)));
  };
  const std::string first = write("a.mtx", 64, 1);
  for (const std::string& other : {write("smaller.mtx", 2, 1), write("values.mtx", 64, 2)})
    for (const std::vector<std::string>& machine :
         {std::vector<std::string>{"--machine", "host"}, {"--devices", "4", "--machine", "mk1"}}) {
      SCOPED_TRACE(other + " " + machine[0]);
      std::vector<std::vector<std::string>> commands;
      for (const std::string& file : {first, other}) {
        commands.push_back({kTool, "run", "--batch-size", "8", "--matrix", file});
        commands.back().insert(commands.back().end(), machine.begin(), machine.end());
      }
      const test::Outcome outcome = run_each(commands);
      EXPECT_EQ(outcome.exit, 2) << outcome.out << outcome.err;
      EXPECT_NE(outcome.err.find("rank 1 was given another"), std::string::npos) << outcome.err;
      EXPECT_EQ(outcome.out.find("WRONG"), std::string::npos) << outcome.out;
    }
}

// The exit code of the job is that of the rank that failed, whichever it is.
TEST_F(MpiRun, AnOptionThatOneRankAloneCannotReadEndsTheJobAsAWrongCommandLine) {
  for (const std::size_t wrong : {0, 1})
    for (const std::vector<std::string>& option : {std::vector<std::string>{"--nonsense"},
                                                   {"--single-phase", "sideways"},
                                                   {"--threads", "many"}}) {
      std::vector<std::vector<std::string>> commands(2, {kTool, "run", "--machine", "host"});
      for (std::vector<std::string>& command : commands)
        command.insert(command.end(), kLayer.begin(), kLayer.end());
      commands[wrong].insert(commands[wrong].end(), option.begin(), option.end());
      const test::Outcome outcome = run_each(commands);
      EXPECT_EQ(outcome.exit, 2) << outcome.out << outcome.err;
      EXPECT_NE(outcome.err.find(option[0]), std::string::npos) << outcome.err;
    }
}

TEST_F(MpiRun, FilesThatCannotBeReadEndTheJobAsBadInput) {
  const test::TemporaryFolder folder;
  const std::string broken = folder.write("broken.mtx", "%%MatrixMarket matrix\n");
  std::string values = "1";
  for (int i = 0; i < 1 << 20; ++i) values += ",1";
  const std::string large =
      folder.write("large.json", R"({"base": "bow", "tiles": [)" + values + "]}");
  for (const std::vector<std::string>& files :
       {std::vector<std::string>{"--machine", "host", "--matrix", folder / "none.mtx"},
        {"--machine", "host", "--matrix", broken},
        {"--devices", "2", "--machine", large, "--input-size", "64", "--output-size", "64",
         "--density", "0.2"}}) {
    std::vector<std::string> arguments{"run", "--batch-size", "8"};
    arguments.insert(arguments.end(), files.begin(), files.end());
    const test::Outcome outcome = run(2, arguments, {kTool});
    EXPECT_EQ(outcome.exit, 3) << outcome.out << outcome.err;
    EXPECT_NE(outcome.err.find(files[3]), std::string::npos) << outcome.err;
  }
}

// Limits of the shell: on the size of files, and on the memory of one rank. Open MPI itself takes
// about 200 MB of addresses.
TEST_F(MpiRun, ALimitOfTheSystemEndsTheJobWithItsReason) {
  const test::TemporaryFolder folder;
  const std::string layer =
      " run --machine host --threads 1 --density 0.3 --batch-size 256 --data-type float";
  // Open MPI 5 keeps the memory that ranks share in files, so that these talk over the network.
  const std::string files =
      std::string(
          "export OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo; ulimit -f 10; exec ") +
      kTool + layer + " --input-size 256 --output-size 256 --output-dir " + (folder / "out");
  const test::Outcome written = run(2, {}, {"sh", "-c", files});
  EXPECT_EQ(written.exit, 6) << written.out << written.err;
  EXPECT_NE(written.err.find("cannot be written"), std::string::npos) << written.err;

  const std::string large = layer + " --input-size 8192 --output-size 8192";
  const std::string start = std::string("exec ") + kTool + large;
  const test::Outcome stored =
      run_each({{"sh", "-c", start}, {"sh", "-c", "ulimit -v 500000; " + start}});
  EXPECT_EQ(stored.exit, 6) << stored.out << stored.err;
  EXPECT_NE(stored.err.find("rank 1: this computer does not have enough memory"), std::string::npos)
      << stored.err;
}

TEST_F(MpiRun, ACommandOfOneProcessIsRefused) {
  const test::Outcome outcome = run(2, {"doctor"}, {kTool});
  EXPECT_EQ(outcome.exit, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("runs in one process"), std::string::npos) << outcome.err;
}

TEST_F(MpiRun, TheToolSaysThatARankHasMoreThreadsThanCores) {
  std::vector<std::string> arguments{"run", "--machine", "host", "--threads", "2"};
  arguments.insert(arguments.end(), kLayer.begin(), kLayer.end());
  const test::Outcome outcome = run(2, arguments, {"taskset", "-c", "0", kTool});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("rank 1 has 2 threads, but is bound to 1 core"), std::string::npos)
      << outcome.out;
}

TEST_F(MpiRun, TheToolRefusesWhatOneProcessDoes) {
  std::vector<std::string> arguments{"run", "--machine", "gc200"};
  arguments.insert(arguments.end(), kLayer.begin(), kLayer.end());
  const test::Outcome outcome = run(2, arguments, {kTool});
  EXPECT_EQ(outcome.exit, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("modelled machines run in one process"), std::string::npos);
}

TEST_F(MpiRun, GroupsHaveTheFilesOfOneProcess) {
  const test::TemporaryFolder folder;
  const auto arguments = [&](const std::string& out) {
    std::vector<std::string> all{
        "run",          "--machine", "host",         "--groups",     "2",
        "--block-size", "4",         "--self-check", "--output-dir", folder / out};
    all.insert(all.end(), kLayer.begin(), kLayer.end());
    return all;
  };
  std::vector<std::string> alone = arguments("alone");
  alone.insert(alone.begin(), kTool);
  EXPECT_EQ(test::run(alone).exit, 0);
  for (const int ranks : {3, 4}) {
    const test::Outcome outcome = run(ranks, arguments("ranks"), {kTool});
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("Fwd     ok: 16800 results"), std::string::npos) << outcome.out;
    for (const char* name :
         {"q.npy", "s_gradient.npy", "weight_gradient_0.npz", "weight_gradient_1.npz"})
      EXPECT_EQ(read_file(folder / "ranks" + "/" + name), read_file(folder / "alone" + "/" + name))
          << name;
  }
}

TEST_F(MpiRun, ReplicasHaveTheFilesOfFewerRanksAndMayHaveGroups) {
  const test::TemporaryFolder folder;
  const auto outcome = [&](int ranks, const std::string& out) {
    std::vector<std::string> all{
        "run",      "--machine", "host",         "--replicas",   "2",
        "--groups", "2",         "--self-check", "--output-dir", folder / out};
    all.insert(all.end(), kLayer.begin(), kLayer.end());
    return run(ranks, all, {kTool});
  };
  for (const auto& [ranks, out] : {std::pair{4, "few"}, {8, "many"}}) {
    const test::Outcome one = outcome(ranks, out);
    EXPECT_EQ(one.exit, 0) << one.err;
    EXPECT_NE(one.out.find("cut over ranks: 2 replicas"), std::string::npos) << one.out;
    EXPECT_NE(one.out.find("GradA   ok: 13440 results"), std::string::npos) << one.out;
  }
  for (const char* name :
       {"q.npy", "s_gradient.npy", "weight_gradient_0.npz", "weight_gradient_1.npz"})
    EXPECT_EQ(read_file(folder / "many" + "/" + name), read_file(folder / "few" + "/" + name))
        << name;
}

TEST_F(MpiRun, ANumberOfReplicasThatDoesNotDivideTheRanksIsRefused) {
  std::vector<std::string> arguments{"run", "--machine", "host", "--replicas", "2"};
  arguments.insert(arguments.end(), kLayer.begin(), kLayer.end());
  const test::Outcome outcome = run(3, arguments, {kTool});
  EXPECT_EQ(outcome.exit, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("2 replicas do not divide 3 ranks; give a divisor"), std::string::npos)
      << outcome.err;
  arguments.insert(arguments.begin(), kTool);
  const test::Outcome alone = test::run(arguments);
  EXPECT_EQ(alone.exit, 2) << alone.err;
  EXPECT_NE(alone.err.find("--replicas: is for several ranks"), std::string::npos) << alone.err;
}

TEST_F(MpiRun, TheToolRunsABatchOfProblems) {
  std::vector<std::string> arguments{"bench", "--", "--machine", "host"};
  arguments.insert(arguments.end(), kLayer.begin(), kLayer.end());
  const test::Outcome outcome = run(2, arguments, {kTool});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("tests:1 passed:1"), std::string::npos) << outcome.out;
}

// Steps with a rewire, an evaluation, and a run that goes on with another number of ranks.
TEST_F(MpiRun, TheToolTrainsWithTheBitsOfOneRank) {
  const test::TemporaryFolder folder;
  const train::DataSet data = test::small_data();
  test::write_part(folder / "train", data.training);
  test::write_part(folder / "t10k", data.test);
  std::string batch = "40";
  const auto train = [&](int ranks, const std::string& epochs, std::vector<std::string> more) {
    std::vector<std::string> arguments{
        "train",   "--layers", "20,30,10", "--data",   folder / "", "--batch-size", batch,
        "--every", "3",        "--json",   "--epochs", epochs,      "--threads",    "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(ranks, arguments, {kTool});
  };
  const test::Outcome one = train(1, "3", {});
  ASSERT_EQ(one.exit, 0) << one.err;
  EXPECT_EQ(test::without_seconds(train(3, "3", {}).out), test::without_seconds(one.out));
  const std::string file = folder / "run.safetensors";
  const test::Outcome whole = train(2, "3", {"--checkpoint", file});
  EXPECT_EQ(test::without_seconds(whole.out), test::without_seconds(one.out));
  EXPECT_EQ(test::without_seconds(train(3, "3", {"--resume", file}).out),
            test::without_seconds(one.out));
  const auto refusal = [&](const std::vector<std::string>& more) {
    const test::Outcome outcome = train(2, "1", more);
    EXPECT_EQ(outcome.exit, 2) << outcome.err;
    return outcome.err;
  };
  EXPECT_NE(refusal({"--machine", "gc200"}).find("start the program without mpirun"),
            std::string::npos);
  EXPECT_NE(refusal({"--beside-dense"}).find("no dense passes"), std::string::npos);
  batch = "41";
  EXPECT_NE(refusal({}).find("training on several ranks: "), std::string::npos);
}

}  // namespace
}  // namespace tessera::distributed
