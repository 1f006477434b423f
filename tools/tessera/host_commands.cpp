#include "tessera/tools/tessera/host_commands.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "tessera/base/executor.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tools/inputs.hpp"
#include "tessera/tools/internal/host_timing.hpp"
#include "tessera/tools/internal/progress.hpp"

namespace tessera::tools {
namespace {

using host::DenseChoice;

std::string name_of(BlockShape block) { return fmt::format("{}x{}", block.rows, block.cols); }

// Measures runs of layers of one size.
template <class T>
class Runs {
 public:
  explicit Runs(const LayerArguments& a) : a_(a), executor_(make_executor()) {}

  // Returns the seconds of all passes; the time of each is the median of several runs.
  double seconds(BlockShape block, double density, DenseChoice dense) {
    Problem problem = problem_of(a_);
    problem.block = block;
    problem.density = density;
    host::HostLayer layer(problem, host::read_host_cpu(), *executor_, {.dense = dense});
    const Dims whole = problem.size_in_blocks();
    sparse::Csr<float> weights =
        sparse::random_pattern(whole.x, whole.y, block, density, /*seed=*/1);
    layer.set_weights(weights);
    const auto s = std::as_const(s_).view(), q = std::as_const(q_).view();
    double sum = internal::measure([&] {
                   return layer.template forward<T>(s, out_q_.view());
                 }).times.seconds;
    if (a_.grad_a())
      sum += internal::measure([&] {
               return layer.template grad_a<T>(q, out_s_.view());
             }).times.seconds;
    if (a_.grad_w())
      sum += internal::measure([&] {
               return layer.template grad_w<T>(q, s, weights.values);
             }).times.seconds;
    return sum;
  }

 private:
  const LayerArguments& a_;
  std::unique_ptr<Executor> executor_;
  Matrix<T> s_ = random_matrix<T>(a_.input_size, a_.batch_size, 2);
  Matrix<T> q_ = random_matrix<T>(a_.output_size, a_.batch_size, 3);
  Matrix<T> out_q_{a_.output_size, a_.batch_size}, out_s_{a_.input_size, a_.batch_size};
};

template <class T>
std::string crossover_text(const LayerArguments& a) {
  constexpr int kHalvings = 5;  // to an accuracy of 1/32
  internal::Progress progress(false);
  progress.set("measuring the dense layer");
  Runs<T> runs(a);
  const double dense = runs.seconds({1, 1}, 0.01, DenseChoice::Always);
  std::string text =
      fmt::format("dense: {:.4f} ms ({}, measured)\n{:<10}{:>24}{:>24}\n", dense * 1e3,
                  host::dense_kernel_name(), "block", "sparse wins up to", "ms there");
  for (const std::int64_t side : report::kHostBlockSides) {
    double low = 0, high = 1, there = 0;
    for (int step = 0; step < kHalvings; ++step) {
      progress.set(fmt::format("blocks of {}", side), step, kHalvings);
      const double middle = (low + high) / 2;
      const double seconds = runs.seconds({side, side}, middle, DenseChoice::Never);
      if (seconds < dense) there = seconds;
      (seconds < dense ? low : high) = middle;
    }
    text += fmt::format("{:<10}{:>24.3f}{:>24}\n", name_of({side, side}), low,
                        there > 0 ? fmt::format("{:.4f}", there * 1e3) : "-");
  }
  return text + "densities in steps of 1/32; times are measured\n";
}

}  // namespace

report::HostPlan host_plan(const Problem& problem,
                           const std::function<double(BlockShape)>& blocks_as) {
  return report::plan_on_host(problem, host::read_host_cpu(),
                              host::find_host_rates(host_rates_path()), blocks_as);
}

std::string host_crossover(const LayerArguments& a) {
  return with_type(a.data_type, [&]<class T>(T) { return crossover_text<T>(a); });
}

}  // namespace tessera::tools
