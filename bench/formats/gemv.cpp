#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "tessera/arrays/tensor/blas.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/random.hpp"
#include "tessera/bench/formats/parts.hpp"

namespace tessera::bench {
namespace {

constexpr std::int64_t kRows = 100'000, kCols = 4096, kRowEntries = 160;

template <class T>
arrays::SlicedCsr<T> random_csr() {
  Random random(/*seed=*/2);
  arrays::CsrArrays<T> a{kRows, kCols, {}, {}, {}, {}};
  constexpr std::int64_t kGap = kCols / kRowEntries;
  for (std::int64_t r = 0; r < kRows; ++r) {
    a.row_begin.push_back(r * kRowEntries);
    for (std::int64_t k = 0; k < kRowEntries; ++k) {
      a.columns.push_back(static_cast<std::int32_t>(k * kGap + random.below(kGap)));
      a.values.push_back(static_cast<T>(random.below(8)));
    }
    a.row_end.push_back((r + 1) * kRowEntries);
  }
  return arrays::SlicedCsr<T>(std::move(a));
}

// Adds words in eight lanes, which the compiler turns into vectors, so reading is the only limit.
std::uint64_t sum_words(const void* memory, std::size_t bytes) {
  const auto* words = static_cast<const std::uint64_t*>(memory);
  std::uint64_t lane[8] = {};
  for (std::size_t i = 0; i + 8 <= bytes / 8; i += 8)
    for (std::size_t j = 0; j < 8; ++j) lane[j] += words[i + j];
  return std::accumulate(lane, lane + 8, std::uint64_t{0});
}

// Returns the bytes per second at which this core reads values and columns.
template <class T>
double read_rate(const arrays::CsrArrays<T>& a) {
  const std::size_t value_bytes = a.values.size() * sizeof(T), col_bytes = a.columns.size() * 4;
  std::uint64_t keep = 0;
  const double seconds = best_seconds(7, [&] {
    keep += sum_words(a.values.data(), value_bytes) + sum_words(a.columns.data(), col_bytes);
  });
  return keep == 42 ? 0 : double(value_bytes + col_bytes) / seconds;
}

template <class T>
Lines lines_of(const std::string& type) {
  const arrays::SlicedCsr<T> a = random_csr<T>();
  const std::vector<T> x(std::size_t(kCols), T(1));
  std::vector<T> y(static_cast<std::size_t>(kRows));
  const double seconds = best_seconds(7, [&] { arrays::gemv<arrays::SlicedCsr<T>>(a, x, y); });
  const auto& arrays = a.arrays();
  const double checksum = std::accumulate(y.begin(), y.end(), 0.0);
  const double truth = std::accumulate(arrays.values.begin(), arrays.values.end(), 0.0);
  if (checksum != truth) return {{"CSR gemv, " + type, "wrong result", "right", false}};
  const double bytes = double(arrays.values.size()) * double(sizeof(T) + 4);
  const double rate = bytes / seconds, memory = read_rate(arrays);
  return {
      {fmt::format("CSR gemv, {}, {:.1f} GB/s; memory {:.1f} GB/s", type, rate / 1e9, memory / 1e9),
       fmt::format("{:.2f} of the memory's rate", rate / memory), ">= 0.8", rate >= 0.8 * memory}};
}

// Compares a product on all cores with reading the same arrays on all cores.
template <class T>
Line all_cores_line(const std::string& type) {
  const auto executor = make_executor();
  const arrays::SlicedCsr<T> a = random_csr<T>();
  const arrays::CsrArrays<T>& arrays = a.arrays();
  const std::vector<T> x(std::size_t(kCols), T(1));
  std::vector<T> y(static_cast<std::size_t>(kRows));
  constexpr std::int64_t kParts = 64;
  std::vector<std::uint64_t> sums(kParts);
  const auto read = [&] {
    const std::size_t values = arrays.values.size() / kParts;
    executor->for_each(kParts, [&](std::int64_t part) {
      const std::size_t first = std::size_t(part) * values;
      sums[std::size_t(part)] = sum_words(arrays.values.data() + first, values * sizeof(T)) +
                                sum_words(arrays.columns.data() + first, values * 4);
    });
  };
  const auto multiply = [&] { arrays::gemv<arrays::SlicedCsr<T>>(a, x, y, {}, *executor); };
  const double ratio = ratio_of_best(read, multiply);
  return {fmt::format("CSR gemv, {}, {} threads", type, executor->threads()),
          fmt::format("{:.2f} of the memory's rate", ratio), "", true};
}

}  // namespace

Lines gemv_lines() {
  Lines lines = lines_of<float>("float"), more = lines_of<double>("double");
  lines.insert(lines.end(), more.begin(), more.end());
  lines.push_back(all_cores_line<float>("float"));
  lines.push_back(all_cores_line<double>("double"));
  return lines;
}

}  // namespace tessera::bench
