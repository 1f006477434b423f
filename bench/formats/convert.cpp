#include "tessera/sparse/convert.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <memory>
#include <utility>

#include "tessera/base/random.hpp"
#include "tessera/bench/formats/parts.hpp"
#include "tessera/sparse/check.hpp"

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

struct SciPy {
  char version[32] = "";
  double rate = 0;  // entries a second, 0: did not run
};

SciPy scipy_rate(const std::string& python) {
  SciPy result;
  if (python.empty()) return result;
  const std::string command = fmt::format("{} {}/bench/formats/scipy_rate.py {} {} {} 2>/dev/null",
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

std::string rate_text(double rate) { return fmt::format("{:.1f} M entries/s", rate / 1e6); }

}  // namespace

Lines conversion_lines(const std::string& python) {
  const sparse::Coo<float> coo = shuffled_entries();
  if (!is_right(coo, sparse::to_csr(coo))) return {{"COO to CSR", "wrong result", "right", false}};
  const double rate =
      double(kEntries) / best_seconds(3, [&] { sparse::Csr<float> csr = sparse::to_csr(coo); });
  Lines lines = {{"COO to CSR, 16 million shuffled", rate_text(rate), "", true}};
  const SciPy scipy = scipy_rate(python);
  if (scipy.rate > 0)
    lines.push_back({fmt::format("  beside SciPy {}, {}", scipy.version, rate_text(scipy.rate)),
                     fmt::format("{:.2f} times", rate / scipy.rate), ">= 3",
                     rate >= 3 * scipy.rate});
  else
    lines.push_back({"  beside SciPy", "not measured: this Python has none", "", true});
#ifdef TESSERA_HAS_EIGEN
  const double eigen = double(kEntries) / eigen_seconds(coo);
  lines.push_back(
      {"  beside Eigen, " + rate_text(eigen), fmt::format("{:.2f} times", rate / eigen), "", true});
#else
  lines.push_back({"  beside Eigen", "not measured: not found when this was built", "", true});
#endif
  return lines;
}

}  // namespace tessera::bench
