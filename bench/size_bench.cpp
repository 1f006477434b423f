// Measures the time and the memory of large matrices: files of 20 million elements that the tool
// converts, and a random pattern of 54 million. --bars exits with 1 if one is short.

#include <fmt/format.h>
#include <fmt/os.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/bench/report.hpp"
#include "tessera/bench/size/files.hpp"
#include "tessera/bench/size/program.hpp"
#include "tessera/io/read.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::bench {
namespace {

namespace fs = std::filesystem;

constexpr double kMiB = 1 << 20;

// Runs a part in a process of its own, so that the memory it takes does not count for the programs
// that are started later.
void apart(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("cannot start a process");
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0) throw std::runtime_error("a part of the benchmark failed");
}

class SizeBench {
 public:
  SizeBench(std::string tessera, fs::path folder, Report& report)
      : tessera_(std::move(tessera)), folder_(std::move(folder)), report_(report) {}

  void convert() {
    for (const char* const name : {"by_row.mtx", "shuffled.mtx"}) {
      const ProgramRun run = tool({"convert", file(name), target("out.smtx")});
      report_.at_most(fmt::format("convert {} to .smtx, s", name), run.seconds, 6);
      report_.at_most("... peak, GB", run.peak_bytes / 1e9, 0.5);
    }
  }

  void npz() {
    const ProgramRun run = tool({"convert", file("by_row.mtx"), target("out.npz")});
    report_.at_most("convert by_row.mtx to .npz, s", run.seconds, 12);
    report_.tell("... peak, GB", run.peak_bytes / 1e9);
    report_.tell("... bytes an element",
                 double(fs::file_size(target("out.npz"))) / double(Scattered{}.entries()));
  }

  void bad_first_line() {
    constexpr std::int64_t kPage = 4096;
    const std::string path = target("bad.mtx");
    fs::remove(path);
    fmt::output_file(path).print("%%MatrixMarket tensor coordinate real general\n");
    fs::resize_file(path, std::uintmax_t{1} << 32);
    // Asking reads a file, too.
    const std::int64_t first = bytes_read();
    const std::int64_t before = bytes_read();
    const std::int64_t itself = before - first;
    try {
      io::read_matrix(path);
      throw std::runtime_error("a file with a bad first line was read");
    } catch (const Error&) {
    }
    report_.at_most("bytes read of a file of 4 GiB with a bad first line, pages",
                    double(bytes_read() - before - itself) / double(kPage), 1);
  }

  void passes() {
    for (const char* const name : {"by_row.mtx", "shuffled.mtx", "symmetric.mtx"}) {
      const ProgramRun run = run_program(
          {tessera_, "convert", "--memory", "64", file(name), target("out.smtx")}, 512 << 20);
      expect_success(run, name);
      report_.tell(fmt::format("convert {} to .smtx within 64 MiB, s", name), run.seconds);
      report_.at_most("... peak, MiB", run.peak_bytes / kMiB, 64);
    }
  }

  // Takes much memory, so it must come after all programs.
  void pattern() {
    const auto begin = std::chrono::steady_clock::now();
    const auto matrix = sparse::random_pattern(32768, 32768, {1, 1}, 0.05, 1);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    report_.at_most(fmt::format("random pattern of {:.1f} million in 32768 square, s",
                                double(matrix.blocks()) / kMillion),
                    taken.count(), 4);
  }

 private:
  static void expect_success(const ProgramRun& run, const std::string& what) {
    if (run.exit_code != 0)
      throw std::runtime_error(fmt::format("{}: exit code {}", what, run.exit_code));
  }
  ProgramRun tool(std::vector<std::string> words) {
    words.insert(words.begin(), tessera_);
    const ProgramRun run = run_program(words);
    expect_success(run, words[1] + " " + words[2]);
    return run;
  }
  std::string target(const std::string& name) const { return (folder_ / name).string(); }

  // Returns the path of a file, which is made first if it is not there.
  std::string file(const std::string& name) {
    const std::string path = target(name);
    if (fs::exists(path)) return path;
    if (!name.ends_with(".mtx")) {
      tool({"convert", file("by_row.mtx"), path});
      return path;
    }
    apart([&] {
      write_scattered_mtx(path, {}, name == "by_row.mtx" ? EntryOrder::ByRow : EntryOrder::Shuffled,
                          name == "symmetric.mtx" ? Triangle::LowerOfSymmetric : Triangle::Both);
    });
    return path;
  }

  std::string tessera_;
  fs::path folder_;
  Report& report_;
};

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) {
  using tessera::bench::SizeBench;
  CLI::App app("The time and the memory of large matrices, measured on this computer");
  bool bars = false, keep = false;
  std::string only, folder = (std::filesystem::temp_directory_path() / "size_bench").string();
  std::string program = TESSERA_PROGRAM;
  app.add_flag("--bars", bars, "exit with 1 when a bar is short");
  app.add_option("--only", only, "one part");
  app.add_option("--folder", folder, "folder of the files, 2.5 GB");
  app.add_flag("--keep", keep, "keep the files for the next time");
  app.add_option("--tessera", program, "the program that is measured");
  CLI11_PARSE(app, argc, argv);

  std::filesystem::create_directories(folder);
  tessera::bench::Report report;
  SizeBench bench(program, folder, report);
  const auto part = [&](const char* name, void (SizeBench::*run)()) {
    if (only.empty() || only == name) (bench.*run)();
    std::fflush(stdout);
  };
  part("convert", &SizeBench::convert);
  part("bad", &SizeBench::bad_first_line);
  part("npz", &SizeBench::npz);
  part("passes", &SizeBench::passes);
  part("pattern", &SizeBench::pattern);
  if (!keep) std::filesystem::remove_all(folder);
  return bars && !report.all_met() ? 1 : 0;
}
