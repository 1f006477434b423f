// What encoding, decoding and updating buckets cost on this computer. With --bars one line for each
// figure that is promised, and exit 1 when one is short.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/sparse/random.hpp"

namespace {

using namespace tessera;

constexpr std::uint64_t kSeed = 7;

struct Workload {
  sparse::Csr<float> matrix;
  partitioner::TileGrid grid;
};

// Capacities of a plan that expects the same everywhere, and 30 % more.
void set_capacities(partitioner::TileGrid& grid, std::int64_t blocks) {
  constexpr double kSlack = 1.3;
  const std::int64_t per_bucket = ceil_div(blocks, grid.buckets());
  const std::int64_t rows =
      std::min(per_bucket, ceil_div(grid.x_range(0).size() / grid.block.rows, grid.splits.z) + 1);
  const auto grown = [](std::int64_t n) { return std::int64_t(kSlack * double(n)) + 1; };
  const codelets::RecordShape shape{grid.block.is_element(), grid.grad_w, grid.workers};
  grid.meta_words = grown(codelets::record_words(shape, rows, per_bucket));
  grid.blocks = grown(per_bucket);
}

Workload square(std::int64_t side, double density, std::int64_t block, Dims splits) {
  Workload w{sparse::random_pattern(side, side, {block, block}, density, kSeed), {}};
  constexpr std::int64_t kBatchPerTile = 4;
  w.grid.size = {1, side, side, kBatchPerTile * splits.z};
  w.grid.block = w.matrix.block;
  w.grid.splits = splits;
  set_capacities(w.grid, w.matrix.blocks());
  return w;
}

double seconds(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median_seconds(const std::function<void()>& body) {
  constexpr int kRepeats = 21;
  body();
  std::vector<double> times;
  for (int i = 0; i < kRepeats; ++i) times.push_back(seconds(body));
  std::nth_element(times.begin(), times.begin() + kRepeats / 2, times.end());
  return times[kRepeats / 2];
}

void show(const std::string& name, const Workload& w) {
  auto result = partitioner::encode(w.matrix, w.grid);
  if (!result.buckets) {
    fmt::print("{}: {}\n", name, result.misfit->message);
    return;
  }
  const auto& b = *result.buckets;
  const auto values = partitioner::to_bucket_order<float, float>(b, w.matrix.values);
  const double n = double(w.matrix.blocks());
  const double e = median_seconds([&] { auto r = partitioner::encode(w.matrix, w.grid); });
  const double v = median_seconds(
      [&] { auto r = partitioner::to_bucket_order<float, float>(b, w.matrix.values); });
  const double d = median_seconds([&] { auto r = partitioner::decode<float>(b, values); });
  fmt::print(
      "{}: {} buckets, moved {}; encode {:.1f} M/s {:.3f} ms; values {:.1f} M/s; decode {:.1f} "
      "M/s\n",
      name, w.grid.buckets(), b.stats.moved_blocks, n / e / 1e6, e * 1e3, n / v / 1e6, n / d / 1e6);
}

}  // namespace

int main() {
  show("e 0.1", square(4096, 0.1, 1, {1, 46, 4, 8}));
  show("e 0.01", square(4096, 0.01, 1, {1, 46, 4, 8}));
  show("b16", square(4096, 0.1, 16, {1, 32, 2, 23}));
  show("b16b", square(4096, 0.1, 16, {1, 64, 1, 23}));
  for (std::int64_t y : {1, 2, 4, 8}) show("py", square(4096, 0.1, 1, {1, 46, y, 32 / y}));
}
