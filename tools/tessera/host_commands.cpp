#include "tessera/tools/tessera/host_commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>

#include "tessera/base/executor.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tools/inputs.hpp"
#include "tessera/tools/internal/host_timing.hpp"
#include "tessera/tools/internal/manual.hpp"
#include "tessera/tools/internal/progress.hpp"

namespace tessera::tools {
namespace {

using host::DenseChoice;

constexpr int kHalvings = 5;  // to an accuracy of 1/32
constexpr double kStep = 1.0 / (1 << kHalvings);

std::string name_of(BlockShape block) { return fmt::format("{}x{}", block.rows, block.cols); }

// The time of all passes; the time of each is the median of several runs.
struct Measured {
  double seconds = 0;
  double spread = 0;  // in seconds, the sum over the passes

  std::string text() const {
    return fmt::format("{:.4f} +-{:.1f} %", seconds * 1e3, 100 * spread / seconds);
  }
};

// Measures runs of layers of one size.
template <class T>
class Runs {
 public:
  explicit Runs(const LayerArguments& a) : a_(a), executor_(make_executor()) {
    a_.data_type = data_type_of<T>();
  }

  Measured random(BlockShape block, double density) {
    const Dims whole = problem(block, density).size_in_blocks();
    return run(sparse::random_pattern(whole.x, whole.y, block, density, /*seed=*/1), density, {});
  }

  Measured pattern(const sparse::Csr<double>& ones, BlockShape block) {
    const sparse::Csr<double> blocks = in_whole_blocks(ones, block);
    const double places = double(blocks.block_rows()) * double(blocks.block_cols());
    return run(sparse::cast<float>(blocks), double(blocks.blocks()) / places, {});
  }

  Measured dense(bool own_kernel) {
    constexpr double kDensity = 0.01;  // of a pattern that dense kernels fill with zeros
    return run(sparse::random_pattern(a_.output_size, a_.input_size, {1, 1}, kDensity, /*seed=*/1),
               kDensity,
               {.dense = DenseChoice::Always, .own_dense_kernel = own_kernel, .rates = {}});
  }

 private:
  Problem problem(BlockShape block, double density) const {
    Problem problem = problem_of(a_);
    problem.block = block;
    problem.density = density;
    return problem;
  }

  Measured run(sparse::Csr<float> weights, double density, const host::HostOptions& options) {
    host::HostLayer layer(problem(weights.block, density), host::read_host_cpu(), *executor_,
                          options);
    layer.set_weights(weights);
    const auto s = std::as_const(s_).view(), q = std::as_const(q_).view();
    Measured sum;
    const auto add = [&sum](const auto& pass) {
      const internal::MedianTimes median = internal::measure(pass, kStep);
      sum.seconds += median.times.seconds;
      sum.spread += median.spread * median.times.seconds;
    };
    add([&] { return layer.template forward<T>(s, out_q_.view()); });
    if (a_.grad_a()) add([&] { return layer.template grad_a<T>(q, out_s_.view()); });
    if (a_.grad_w()) add([&] { return layer.template grad_w<T>(q, s, weights.values); });
    return sum;
  }

  LayerArguments a_;
  std::unique_ptr<Executor> executor_;
  Matrix<T> s_ = random_matrix<T>(a_.input_size, a_.batch_size, 2);
  Matrix<T> q_ = random_matrix<T>(a_.output_size, a_.batch_size, 3);
  Matrix<T> out_q_{a_.output_size, a_.batch_size}, out_s_{a_.input_size, a_.batch_size};
};

// A dense product of this computer.
struct DenseRun {
  Measured time;
  std::string name;
};

// Adds the dense products of a type: that of the library, if the build has one, and our own.
template <class T>
void add_dense(const LayerArguments& a, std::vector<DenseRun>& all) {
  Runs<T> runs(a);
  const std::string type = to_string(data_type_of<T>());
  all.push_back({runs.dense(false), fmt::format("{}, {}", host::dense_kernel_name(), type)});
  all.push_back({runs.dense(true), "own kernel, " + type});
}

// Returns the fastest dense product. Where float is faster than the type of the layer, a user would
// run float.
template <class T>
DenseRun fastest_dense(const LayerArguments& a) {
  std::vector<DenseRun> all;
  add_dense<T>(a, all);
  if constexpr (!std::is_same_v<T, float>) add_dense<float>(a, all);
  return *std::ranges::min_element(all, {}, [](const DenseRun& run) { return run.time.seconds; });
}

// Returns the largest density that is faster than dense, and the time there; no time if none is.
template <class T>
std::pair<double, std::optional<Measured>> cross(Runs<T>& runs, BlockShape block, double dense,
                                                 internal::Progress& progress) {
  double low = 0, high = 1;
  std::optional<Measured> there;
  for (int step = 0; step < kHalvings; ++step) {
    progress.set("blocks of " + name_of(block), step, kHalvings);
    const double middle = (low + high) / 2;
    const Measured time = runs.random(block, middle);
    const bool wins = time.seconds < dense;
    if (wins) there = time;
    (wins ? low : high) = middle;
  }
  return {low, there};
}

// Returns the text about the pattern of a file in the blocks that are the fastest for it.
template <class T>
std::string pattern_text(Runs<T>& runs, const CrossoverRequest& request, double dense) {
  std::optional<Measured> best;
  std::string name;
  for (const BlockShape block : request.blocks)
    if (const Measured time = runs.pattern(*request.pattern, block);
        !best || time.seconds < best->seconds)
      best = time, name = name_of(block);
  const bool wins = best->seconds < dense;
  return fmt::format("{}this pattern in {} blocks {} ms, {:.1f}x {} dense; ",
                     wins ? "" : "dense wins: ", name, best->text(),
                     wins ? dense / best->seconds : best->seconds / dense,
                     wins ? "faster than" : "as long as");
}

template <class T>
std::string crossover_text(const CrossoverRequest& request) {
  internal::Progress progress(false);
  progress.set("measuring the dense layer");
  const DenseRun dense = fastest_dense<T>(request.layer);
  Runs<T> runs(request.layer);
  std::string text =
      fmt::format("dense: {} ms ({}, measured)\n{:<10}{:>24}{:>24}\n", dense.time.text(),
                  dense.name, "block", "sparse wins up to", "ms there");
  std::string verdict, pays;
  if (request.pattern) verdict = pattern_text(runs, request, dense.time.seconds);
  for (const BlockShape block : request.blocks) {
    const auto [density, there] = cross(runs, block, dense.time.seconds, progress);
    text += fmt::format("{:<10}{:>24.3f}{:>24}\n", name_of(block), density,
                        there ? there->text() : "-");
    if (density > 0) pays += fmt::format("{:.3g} ({}), ", density, name_of(block));
  }
  verdict += pays.empty() ? "dense wins at every density from 1/32 on, "
                          : "sparse pays up to density " + pays;
  text += "densities in steps of 1/32; times are measured, +- half the range of the middle half\n";
  return internal::wrapped(text + "verdict    " + verdict + "measured\n", 11, 11);
}

}  // namespace

report::HostPlan host_plan(const Problem& problem,
                           const std::function<double(BlockShape)>& blocks_as) {
  return report::plan_on_host(problem, host::read_host_cpu(),
                              host::find_host_rates(host_rates_path()), blocks_as);
}

std::string host_crossover(const CrossoverRequest& request) {
  return with_type(request.layer.data_type, [&]<class T>(T) { return crossover_text<T>(request); });
}

}  // namespace tessera::tools
