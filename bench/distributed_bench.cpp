// Ranks beside threads, sums in a fixed tree beside those of MPI, bits, bytes, and how soon a job
// ends. Started without a launcher, it starts itself with mpirun for the parts that need several
// processes. --bars exits with 1 if a bar is short.

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "tessera/base/launcher.hpp"
#include "tessera/bench/distributed/parts.hpp"
#include "tessera/bench/report.hpp"
#include "tessera/distributed/mpi_ranks.hpp"

namespace {

using namespace tessera;

constexpr const char* kFolder = "TESSERA_DISTRIBUTED_BENCH_FOLDER";  // of the files of run_files

// Starts this program on several ranks and returns its exit code.
int start_ranks(int ranks, const std::string& part, int turns) {
  for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
                           "OMPI_MCA_rmaps_base_oversubscribe"})
    setenv(name, "1", 1);
  setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);
  std::fflush(stdout);
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const pid_t child = fork();
  if (child == 0) {
    execlp("mpirun", "mpirun", "-np", std::to_string(ranks).c_str(), program.c_str(), "--part",
           part.c_str(), "--turns", std::to_string(turns).c_str(), nullptr);
    std::_Exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// The time that a job takes to end after rank 1 was killed or has failed, without that of a job
// that ends well. The job must end with the exit code.
double seconds_to_end(const std::string& part, int code) {
  const auto seconds = [](const std::string& of, int expected) {
    const auto begin = std::chrono::steady_clock::now();
    if (start_ranks(2, of, 1) != expected) throw std::runtime_error(of + ": another exit code");
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  const double all = seconds(part, code);
  return all - seconds("nothing", 0);
}

int run_part(const std::string& part, int turns) {
  const auto body = [&](distributed::Communicator& ranks) {
    if (part == "speed") return bench::run_rank_speed(ranks, turns) ? 0 : 1;
    if (part == "sums") return bench::run_tree_sums(ranks, turns) ? 0 : 1;
    if (part == "files") return bench::run_rank_files(ranks, std::getenv(kFolder)) ? 0 : 1;
    ranks.barrier("start");
    if (ranks.rank() == 1 && part == "kill") std::raise(SIGKILL);
    if (ranks.rank() == 1 && part == "fail") throw Error(ErrorCode::BadInput, "on purpose");
    ranks.barrier("end");
    return 0;
  };
  return distributed::run_mpi_rank(body, [] { return 3; });
}

// The ranks read files that were written before they were started.
bool run_files() {
  std::string folder =
      (std::filesystem::temp_directory_path() / "distributed_benchXXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no temporary folder");
  setenv(kFolder, folder.c_str(), 1);
  bench::write_rank_files(folder);
  const bool all = start_ranks(4, "files", 1) == 0;
  std::filesystem::remove_all(folder);
  return all;
}

bool run_bars(int turns) {
  bool all = bench::run_bits_and_bytes();
  all &= run_files();
  all &= start_ranks(2, "speed", turns) == 0;
  for (const int ranks : {2, 4}) all &= start_ranks(ranks, "sums", turns) == 0;
  bench::Report report;
  report.at_most("killed rank to end of job, s", seconds_to_end("kill", 137), 5);
  report.at_most("error to end of job, s", seconds_to_end("fail", 3), 2);
  return all && report.all_met();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Measures ranks beside threads.", "distributed_bench");
  bool bars = false;
  int turns = 9;
  std::string part;
  app.add_flag("--bars", bars, "measure every bar and exit with 1 if one is short");
  app.add_option("--turns", turns, "measurements of which the median is taken")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--part", part, "one part alone: speed, sums, bits or files");
  CLI11_PARSE(app, argc, argv);
  try {
    if (is_started_by_mpi()) return run_part(part, turns);
    if (part == "files") return run_files() ? 0 : 1;
    if (part == "bits") return bench::run_bits_and_bytes() ? 0 : 1;
    if (!part.empty()) return start_ranks(2, part, turns);
    const bool all = run_bars(turns);
    return bars && !all ? 1 : 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "distributed_bench: {}\n", error.what());
    return 2;
  }
}
