#include "tessera/bench/host/small_layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/bench/timing.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::bench {
namespace {

struct SmallLayer {
  std::int64_t x, y, z, block;
};

// A forward pass and its kernels, in microseconds.
struct PassTime {
  double pass = 0, kernels = 0;
};

// Runs the layer on both executors in turns.
class SmallRun {
 public:
  SmallRun(const SmallLayer& size, ExecutorKind kind, int threads, double density = 0.1)
      : executor_(make_executor(kind, threads)),
        layer_(problem(size, density), host::read_host_cpu(), *executor_),
        s_(random_matrix<float>(size.y, size.z, 1)),
        q_(size.x, size.z) {
    layer_.set_weights(
        sparse::random_pattern(size.x, size.y, {size.block, size.block}, density, 1));
  }
  void run() {
    host::HostTimes times;
    const MatrixView<const float> s = s_.view();
    const double wall = seconds([&] { times = layer_.forward<float>(s, q_.view()); }, Clock::Wall);
    passes_.push_back({1e6 * wall, 1e6 * times.kernel_seconds});
  }
  PassTime time() {
    const auto tenth = passes_.begin() + std::ssize(passes_) / 10;
    std::nth_element(passes_.begin(), tenth, passes_.end(),
                     [](const PassTime& a, const PassTime& b) { return a.pass < b.pass; });
    return *tenth;
  }

 private:
  static Problem problem(const SmallLayer& size, double density) {
    return {.size = {1, size.x, size.y, size.z},
            .block = {size.block, size.block},
            .density = density,
            .data_type = DataType::Float};
  }

  std::unique_ptr<Executor> executor_;
  host::HostLayer layer_;
  Matrix<float> s_, q_;
  std::vector<PassTime> passes_;
};

// Returns the microseconds of a pass that are not in kernels. Passes of few columns do not divide
// their time; there it is the time of a pass without weights.
double rest_of(const SmallLayer& size, ExecutorKind kind, const PassTime& pass, int passes) {
  if (size.z >= 64) return pass.pass - pass.kernels;
  SmallRun empty(size, kind, 1, /*density=*/0);
  for (int i = 0; i < passes; ++i) empty.run();
  return empty.time().pass;
}

bool print_layer(const SmallLayer& size, ExecutorKind kind) {
  constexpr int kPasses = 2000;
  constexpr double kMostRatio = 1.05, kMostRest = 0.08, kMostMicroseconds = 2;
  SmallRun one(size, kind, 1), two(size, kind, 2);
  for (int i = 0; i < kPasses; ++i) {
    one.run();
    two.run();
  }
  const PassTime alone = one.time(), both = two.time();
  const double rest = rest_of(size, kind, alone, kPasses);
  const bool is_short_enough =
      size.z >= 64 ? rest <= kMostRest * alone.pass : rest <= kMostMicroseconds;
  const bool is_met = is_short_enough && both.pass <= kMostRatio * alone.pass;
  fmt::print("| {} x {}, z {}, block {} | {} | {:.1f} | {:.1f} | {:.1f} | {:.2f} | {} |\n", size.x,
             size.y, size.z, size.block, kind == ExecutorKind::Tbb ? "oneTBB" : "std::jthread",
             alone.pass, rest, both.pass, both.pass / alone.pass, is_met ? "ok" : "short");
  std::fflush(stdout);
  return is_met;
}

}  // namespace

bool run_small_bars() {
  fmt::print(
      "| layer, density 0.1, float | executor | us on one thread | not in kernels | us on two | "
      "ratio | |\n| --- | --- | --- | --- | --- | --- | --- |\n");
  bool all = true;
  for (const ExecutorKind kind : {ExecutorKind::Threads, ExecutorKind::Tbb})
    for (const SmallLayer& size : {SmallLayer{256, 256, 8, 1},
                                   {256, 256, 8, 16},
                                   {512, 512, 64, 1},
                                   {512, 512, 64, 16},
                                   {768, 1024, 64, 16},
                                   {1024, 1024, 64, 1}})
      if (has_executor(kind)) all &= print_layer(size, kind);
  return all;
}

}  // namespace tessera::bench
