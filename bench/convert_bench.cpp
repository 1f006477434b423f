// Measures how fast shuffled coordinates become compressed rows, beside SciPy and Eigen. --bars
// exits with 1 if the bar is short.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <utility>

#include "tessera/base/random.hpp"
#include "tessera/bench/report.hpp"
#include "tessera/bench/timing.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/sparse/convert.hpp"

#ifdef TESSERA_HAS_EIGEN
#include <Eigen/SparseCore>
#endif

namespace tessera::bench {
namespace {

constexpr std::int64_t kEntries = 16'000'000, kSide = 65536, kGap = 268;

// Returns shuffled places. They are kGap apart and each is moved by less than that, so no place
// occurs twice.
sparse::Coo<float> shuffled_entries() {
  Random random(/*seed=*/1);
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < kEntries; ++i) places.push_back(i * kGap + random.below(kGap));
  for (std::int64_t i = kEntries - 1; i > 0; --i) std::swap(places[i], places[random.below(i + 1)]);
  sparse::Coo<float> coo;
  coo.rows = coo.cols = kSide;
  for (const std::int64_t place : places) {
    coo.row.push_back(static_cast<std::int32_t>(place / kSide));
    coo.col.push_back(static_cast<std::int32_t>(place % kSide));
    coo.values.push_back(static_cast<float>(place % 1000));
  }
  return coo;
}

bool is_right(const sparse::Coo<float>& coo, const sparse::Csr<float>& csr) {
  sparse::check(csr);
  bool right = csr.blocks() == kEntries;
  for (std::int64_t r = 0; r < csr.rows; ++r)
    for (std::int64_t k = csr.row_begin[r]; k < csr.row_begin[r + 1]; ++k)
      right &= csr.values[k] == static_cast<float>((r * kSide + csr.col[k]) % 1000);
  return right && coo.blocks() == kEntries;
}

// The least processor time of some runs: everything here runs on one core, and other programs may
// be using the computer.
double best_seconds(int times, const std::function<void()>& run) {
  double best = 1e300;
  for (int i = 0; i < times; ++i) best = std::min(best, seconds(run, Clock::OwnThread));
  return best;
}

struct SciPy {
  char version[32] = "";
  double rate = 0;  // entries a second, 0: did not run
};

SciPy scipy_rate(const std::string& python) {
  SciPy result;
  if (python.empty()) return result;
  const std::string command = fmt::format("{} {}/bench/convert/scipy_rate.py {} {} {} 2>/dev/null",
                                          python, TESSERA_SOURCE_DIR, kEntries, kSide, kGap);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  if (pipe == nullptr || std::fscanf(pipe.get(), "%31s %lf", result.version, &result.rate) != 2)
    return {};
  return result;
}

#ifdef TESSERA_HAS_EIGEN
double eigen_seconds(const sparse::Coo<float>& coo) {
  std::vector<Eigen::Triplet<float>> triplets;
  for (std::size_t i = 0; i < coo.row.size(); ++i)
    triplets.emplace_back(coo.row[i], coo.col[i], coo.values[i]);
  return best_seconds(3, [&] {
    Eigen::SparseMatrix<float, Eigen::RowMajor> matrix(kSide, kSide);
    matrix.setFromTriplets(triplets.begin(), triplets.end());
  });
}
#endif

void measure(const std::string& python, Report& report) {
  const sparse::Coo<float> coo = shuffled_entries();
  if (!is_right(coo, sparse::to_csr(coo))) throw std::logic_error("COO to CSR: wrong result");
  const double rate =
      double(kEntries) / best_seconds(3, [&] { sparse::Csr<float> csr = sparse::to_csr(coo); });
  report.tell("COO to CSR, 16 million shuffled, million entries/s", rate / kMillion);
  const SciPy scipy = scipy_rate(python);
  if (scipy.rate > 0)
    report.at_least(fmt::format("  beside SciPy {}, times", scipy.version), rate / scipy.rate, 3);
  else
    fmt::print("  beside SciPy: not measured, this Python has none\n");
#ifdef TESSERA_HAS_EIGEN
  report.tell("  beside Eigen, times", rate * eigen_seconds(coo) / double(kEntries));
#else
  fmt::print("  beside Eigen: not measured, it was not found when this was built\n");
#endif
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) {
  CLI::App app("Compressed rows from shuffled coordinates, measured on this computer");
  bool bars = false;
  std::string python = "python3";
  app.add_flag("--bars", bars, "exit with 1 when a bar is short");
  app.add_option("--python", python, "a Python that has SciPy");
  CLI11_PARSE(app, argc, argv);
  tessera::bench::Report report;
  tessera::bench::measure(python, report);
  return bars && !report.all_met() ? 1 : 0;
}
