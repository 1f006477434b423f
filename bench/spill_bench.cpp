// Measures the propagation steps that spills cause, and the time of encoding beside the same
// encoding without spills. The patterns are 4096 x 4096, half, of density 0.1 on a gc200, with
// tight buckets.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/tessera.hpp"

namespace {

using namespace tessera;
using partitioner::Spilling;

constexpr std::int64_t kSide = 4096;
constexpr double kDensity = 0.1;
constexpr std::uint64_t kSeed = 5;
constexpr int kRepeats = 7;

struct Case {
  std::string name;
  double room;                                           // to spare, as a part of the average
  double (*weight)(std::int64_t row, std::int64_t col);  // density, 1 is the average
  std::int64_t most_steps;                               // bar
  double most_time;  // bar: what spilling adds, as a part of the encoding without spills; 0: none
};

const std::vector<Case>& cases() {
  static const auto uniform = [](std::int64_t, std::int64_t) { return 1.0; };
  static const std::vector<Case> list = {
      {"uniform, 5 %", 0.05, uniform, 1, 1},
      {"uniform, 2 %", 0.02, uniform, 1, 1},
      {"uniform, 1 %", 0.01, uniform, 1, 1},
      {"a tenth of the rows twice as dense, 10 %", 0.1,
       [](std::int64_t row, std::int64_t) { return row < kSide / 10 ? 1.9 : 0.9; }, 1, 0},
      {"density falls from row to row, 10 %", 0.1,
       [](std::int64_t row, std::int64_t) { return 2 - 2 * double(row) / kSide; }, 2, 0},
      {"one quadrant twice as dense, 10 %", 0.1,
       [](std::int64_t row, std::int64_t col) {
         return row < kSide / 2 && col < kSide / 2 ? 1.6 : 0.8;
       },
       2, 0}};
  return list;
}

sparse::Csr<float> pattern(const Case& c) {
  Random random(kSeed);
  sparse::Csr<float> matrix{kSide, kSide, {}, {0}, {}, {}};
  for (std::int64_t row = 0; row < kSide; ++row) {
    for (std::int64_t col = 0; col < kSide; ++col)
      if (random.unit() < kDensity * c.weight(row, col)) matrix.col.push_back(std::int32_t(col));
    matrix.row_begin.push_back(matrix.blocks());
  }
  matrix.values.assign(matrix.col.size(), 1);
  return matrix;
}

partitioner::TileGrid grid_of(const Case& c) {
  const device::Machine machine = device::machine_preset("gc200");
  const Problem problem{
      .size = {1, kSide, kSide, 64}, .density = kDensity, .data_type = DataType::Half};
  planner::Options options = planner::sparse_options();
  options.bucket_confidence = 0;
  options.meta_info_bucket_oversize_proportion = c.room;
  return runtime::tile_grid(problem, planner::plan_or_throw(problem, machine, options), machine);
}

struct Measured {
  double milliseconds = 0;
  partitioner::SpillStats stats;
};

Measured measure(const sparse::Csr<float>& matrix, const partitioner::TileGrid& grid,
                 Spilling spilling) {
  Measured result;
  std::vector<double> times;
  for (int i = 0; i < kRepeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const auto encoded = partitioner::encode(matrix, grid, {.spilling = spilling});
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    if (!encoded.buckets) throw std::runtime_error(encoded.misfit->message);
    times.push_back(time.count());
    result.stats = encoded.buckets->stats;
  }
  std::nth_element(times.begin(), times.begin() + kRepeats / 2, times.end());
  result.milliseconds = times[kRepeats / 2];
  return result;
}

bool bar(const Case& c, const char* what, double figure, double most) {
  const bool good = figure <= most;
  std::printf("%s: %s %.2f, bar %.2f, %s\n", c.name.c_str(), what, figure, most,
              good ? "ok" : "short");
  return good;
}

// Returns true if no bar is short.
bool run(const Case& c, const Measured& whole, bool bars) {
  const auto matrix = pattern(c);
  const auto grid = grid_of(c);
  const Measured greedy = measure(matrix, grid, Spilling::Greedy);
  const Measured fewest = measure(matrix, grid, Spilling::FewestSteps);
  const double added = (fewest.milliseconds - whole.milliseconds) / whole.milliseconds;
  if (!bars) {
    const auto& s = fewest.stats;
    std::printf("| %s | %ld | %ld | %ld | %.2f %% | %.2f %% | %.1f | %.1f | %.1f |\n",
                c.name.c_str(), long(greedy.stats.steps), long(s.steps), long(s.lower_bound_steps),
                100 * greedy.stats.moved_share(), 100 * s.moved_share(), whole.milliseconds,
                greedy.milliseconds, fewest.milliseconds);
    return true;
  }
  const bool few = bar(c, "steps", double(fewest.stats.steps), double(c.most_steps));
  return (c.most_time == 0 || bar(c, "time added", added, c.most_time)) && few;
}

}  // namespace

int main(int argc, char** argv) {
  const bool bars = argc > 1 && std::string(argv[1]) == "--bars";
  bool good = true;
  // The same number of non-zeros with 30 % of slack measures encoding alone.
  Case roomy = cases().front();
  roomy.room = 0.3;
  const Measured whole = measure(pattern(roomy), grid_of(roomy), Spilling::FewestSteps);
  for (const Case& c : cases()) good = run(c, whole, bars) && good;
  return good ? 0 : 1;
}
