#include "tessera/tools/tessera/host_commands.hpp"

#include <fmt/format.h>

#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/device/host_cpu.hpp"
#include "tessera/runtime/host_cost.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tools/inputs.hpp"
#include "tessera/tools/internal/host_timing.hpp"
#include "tessera/tools/internal/progress.hpp"

namespace tessera::inline v0::tools {
namespace {

using planner::Pass;
using runtime::DenseChoice;

constexpr std::int64_t kSides[] = {1, 4, 8, 16};

std::vector<Pass> passes_of(const planner::Problem& problem) {
  std::vector<Pass> passes{Pass::Fwd};
  if (problem.grad_a) passes.push_back(Pass::GradA);
  if (problem.grad_w) passes.push_back(Pass::GradW);
  return passes;
}

std::string name_of(BlockShape block) { return fmt::format("{}x{}", block.rows, block.cols); }

// Forecasts of one way to hold R.
class Table {
 public:
  Table(const planner::Problem& problem, const runtime::HostRates& rates)
      : problem_(problem), setting_{device::read_host_cpu(), 1, rates} {
    setting_.threads = int(setting_.cpu.cores);
  }

  void add_sparse(BlockShape block, double blocks) {
    const Dims size{1, round_up(problem_.size.x, block.rows), round_up(problem_.size.y, block.cols),
                    problem_.size.z};
    const runtime::HostProblem host{size, block, std::int64_t(blocks), problem_.data_type};
    add(name_of(block), [&](Pass pass) { return forecast_sparse(pass, host, setting_); });
  }
  void add_dense() {
    const runtime::HostProblem host{problem_.size, {1, 1}, 0, problem_.data_type};
    add("dense", [&](Pass pass) { return forecast_dense(pass, host, setting_); });
  }
  std::string text() const {
    return fmt::format("{:<8}{:<8}{:>14}{:>14}{:>14}{:>14}{:>14}\n{}", "R as", "pass", "copies, ms",
                       "kernels, ms", "weights, ms", "results, ms", "forecast, ms", rows_) +
           fmt::format(
               "\nfastest: {}, {:.4f} ms; forecast for {} threads from rates measured before\n",
               best_, best_seconds_ * 1e3, setting_.threads);
  }

 private:
  template <class Forecast>
  void add(const std::string& name, const Forecast& forecast) {
    double sum = 0;
    const double ms = 1e3 * double(problem_.size.g);
    for (const Pass pass : passes_of(problem_)) {
      const runtime::HostForecast f = forecast(pass);
      rows_ += fmt::format("{:<8}{:<8}{:>14.4f}{:>14.4f}{:>14.4f}{:>14.4f}{:>14.4f}\n", name,
                           planner::to_string(pass), ms * f.copy_seconds, ms * f.kernel_seconds,
                           ms * f.stream_seconds, ms * f.result_seconds, ms * f.seconds());
      sum += f.seconds() * double(problem_.size.g);
    }
    if (sum >= best_seconds_) return;
    best_seconds_ = sum;
    best_ = name;
  }

  const planner::Problem& problem_;
  runtime::HostSetting setting_;
  std::string rows_, best_;
  double best_seconds_ = std::numeric_limits<double>::infinity();
};

std::string cells_text(const planner::Problem& p, double blocks) {
  std::string text = fmt::format("{:<8}{:>10}{:>10}{:>10}{:>10}\n", "pass", "cell x", "cell y",
                                 "cell z", "operand");
  runtime::HostProblem host{p.size_in_blocks(), p.block, std::int64_t(blocks), p.data_type};
  host.size.g = 1;
  for (const Pass pass : passes_of(p)) {
    const runtime::HostCells c = runtime::cells_of(pass, host, device::read_host_cpu());
    text += fmt::format("{:<8}{:>10}{:>10}{:>10}{:>10}\n", planner::to_string(pass), c.x, c.y, c.z,
                        c.pack ? "packed" : "direct");
  }
  return text + "\n";
}

// Real runs of one layer size.
template <class T>
class Runs {
 public:
  explicit Runs(const LayerArguments& a) : a_(a), executor_(make_executor()) {}

  // Seconds of all passes, each the median of some runs.
  double seconds(BlockShape block, double density, DenseChoice dense) {
    const planner::Problem problem{.size = {1, a_.output_size, a_.input_size, a_.batch_size},
                                   .block = block,
                                   .density = density,
                                   .data_type = a_.data_type,
                                   .partials_type = a_.partials_type,
                                   .grad_a = a_.grad_a(),
                                   .grad_w = a_.grad_w()};
    runtime::HostLayer layer(problem, device::read_host_cpu(), *executor_, {.dense = dense});
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
  constexpr int kHalvings = 5;  // to 1/32
  internal::Progress progress(false);
  progress.set("measuring the dense layer");
  Runs<T> runs(a);
  const double dense = runs.seconds({1, 1}, 0.01, DenseChoice::Always);
  std::string text =
      fmt::format("dense: {:.4f} ms ({}, measured)\n{:<10}{:>24}{:>24}\n", dense * 1e3,
                  runtime::dense_kernel_name(), "block", "sparse wins up to", "ms there");
  for (const std::int64_t side : kSides) {
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

std::string host_plan(const planner::Problem& problem,
                      const std::function<double(BlockShape)>& blocks_as) {
  const runtime::FoundRates found = runtime::find_host_rates(host_rates_path());
  const device::HostCpu cpu = device::read_host_cpu();
  std::string text = found.note.empty() ? "" : fmt::format("note       {}\n", found.note);
  text += fmt::format("layer      {}\nmachine    {}: {}, {} cores\n\n", to_string(problem),
                      device::kHostMachine, device::host_cpu_model(), cpu.cores);
  text += cells_text(problem, blocks_as(problem.block));
  Table table(problem, found.rates);
  table.add_sparse(problem.block, blocks_as(problem.block));
  for (const std::int64_t side : kSides)
    if (side > problem.block.rows && side % problem.block.rows == 0 &&
        side % problem.block.cols == 0)
      table.add_sparse({side, side}, blocks_as({side, side}));
  table.add_dense();
  return text + table.text();
}

std::string host_crossover(const LayerArguments& a) {
  return a.data_type == DataType::Half ? crossover_text<Half>(a) : crossover_text<float>(a);
}

}  // namespace tessera::inline v0::tools
