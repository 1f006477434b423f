#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/host/float_peak.hpp"
#include "tessera/host/internal/rate_figures.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/host/rates.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::host {
namespace {

constexpr std::int64_t kRows = 512, kCols = 1024;
constexpr std::int64_t kWidest = 64;  // columns of a product's panel

// Returns the fastest of some runs, which other work on the computer disturbed least.
template <class Run>
HostTimes fastest(const Run& run) {
  constexpr int kFewest = 3, kMost = 9;
  constexpr double kSeconds = 0.002;
  run();
  HostTimes best = run();
  double sum = best.seconds;
  for (int i = 1; i < kFewest || (i < kMost && sum < kSeconds); ++i) {
    const HostTimes times = run();
    sum += times.seconds;
    if (times.seconds < best.seconds) best = times;
  }
  return best;
}

// A layer of one type that runs on one thread.
template <class T>
class Sample {
 public:
  Sample(BlockShape block, double density, std::int64_t z, const HostOptions& options)
      : executor_(make_executor(1)),
        layer_({.size = {1, kRows, kCols, z},
                .block = block,
                .density = density,
                .data_type = data_type_of<T>(),
                .grad_w = true},
               host::read_host_cpu(), *executor_, options),
        weights_(sparse::random_pattern(kRows, kCols, block, density, /*seed=*/1)),
        s_(random_matrix<T>(kCols, z, 2)),
        q_(random_matrix<T>(kRows, z, 3)) {
    layer_.set_weights(weights_);
  }
  HostTimes run(Pass pass) {
    const auto s = std::as_const(s_).view();
    if (pass == Pass::Fwd) return fastest([&] { return layer_.forward<T>(s, q_.view()); });
    return fastest([&] { return layer_.grad_w<T>(std::as_const(q_).view(), s, weights_.values); });
  }
  HostCells cells(Pass pass) const { return layer_.cells(pass); }
  double flops() const { return 2.0 * double(weights_.values.size()) * double(s_.cols()); }
  double row_blocks(Pass pass) const {
    const double in_row = double(weights_.blocks()) / double(weights_.block_rows());
    return in_row * double(std::min(cells(pass).y, kCols)) / double(kCols);
  }

 private:
  std::unique_ptr<Executor> executor_;
  HostLayer layer_;
  sparse::Csr<float> weights_;
  Matrix<T> s_, q_;
};

template <class T>
void measure_kernels(HostRates& rates) {
  for (const std::int64_t block : {1, 4, 8, 16})
    for (const double density : {0.005, 0.05, 0.4})
      for (const std::int64_t z : {1, 8, 64, 256}) {
        Sample<T> sample({block, block}, density, z, {});
        for (const Pass pass : {Pass::Fwd, Pass::GradW}) {
          if (pass == Pass::Fwd && z > kWidest) continue;
          rates.kernels.push_back({pass, data_type_of<T>(), block, z, sample.row_blocks(pass),
                                   sample.flops() / sample.run(pass).kernel_seconds});
        }
      }
}

template <class T>
void measure_dense(HostRates& rates) {
  for (const std::int64_t z : {1, 8, 64, 256}) {
    Sample<T> sample({1, 1}, 0.01, z, {.dense = DenseChoice::Always});
    for (const Pass pass : {Pass::Fwd, Pass::GradW})
      rates.dense.push_back(
          {pass, data_type_of<T>(), z, 2.0 * double(kRows * kCols * z) / sample.run(pass).seconds});
  }
}

// Returns the seconds per element of a result that a pass spends outside of copies and kernels.
template <class T>
double result_seconds() {
  Sample<T> sample({16, 16}, 0.05, kWidest, {});
  const HostTimes times = sample.run(Pass::Fwd);
  const double rest = times.seconds - times.copy_seconds - times.kernel_seconds;
  return std::max(rest, 1e-12) / double(kRows * kWidest);
}

}  // namespace

HostRates measure_host_rates() {
  const host::HostCpu cpu = host::read_host_cpu();
  HostRates rates;
  rates.cpu_model = host::host_cpu_model();
  rates.dense_kernel = dense_kernel_name();
  rates.peak_flops = host::measure_float_peak().fused;
  rates.l1_bytes_per_second = host::measure_read_rate(Bytes(cpu.l1_data.value / 2));
  rates.l2_bytes_per_second = host::measure_read_rate(Bytes(cpu.l2.value / 2));
  rates.memory_bytes_per_second =
      host::measure_read_rate(Bytes(std::max<std::int64_t>(2 * cpu.l3.value, 64 << 20)));
  constexpr std::int64_t kPacked = 256;
  Sample<float> packed({1, 1}, 0.4, kPacked, {});
  rates.copy_seconds =
      std::max(packed.run(Pass::Fwd).copy_seconds, 1e-12) / double(kCols * kPacked);
  rates.float_result_seconds = result_seconds<float>();
  rates.half_result_seconds = result_seconds<Half>();
  measure_kernels<float>(rates);
  measure_kernels<Half>(rates);
  measure_dense<float>(rates);
  measure_dense<Half>(rates);
  return rates;
}

namespace {

// Calls use(name, figure) for every figure of which more is better.
template <class Rates, class Use>
void each_rate(Rates& rates, const Use& use) {
  internal::each_speed(rates, use);
  for (auto& k : rates.kernels)
    use(fmt::format("{}, {}, {}x{} blocks, batch {}", to_string(k.pass), tessera::to_string(k.type),
                    k.block, k.block, k.z),
        k.flops);
  for (auto& d : rates.dense)
    use(fmt::format("{}, {}, dense, batch {}", to_string(d.pass), tessera::to_string(d.type), d.z),
        d.flops);
}

// The best and the second best figure of a rate so far.
struct BestOfRounds {
  std::string name;
  double first = 0, second = 0;

  bool is_settled() const {
    constexpr double kSpread = 0.2;
    return first > 0 && first - second <= kSpread * first;
  }
};

}  // namespace

RoundsOfRates measure_rounds(const std::function<HostRates()>& measure, int most) {
  std::vector<BestOfRounds> best;
  std::vector<double> least;
  HostRates rates;
  auto unsettled = best.cend();
  for (int round = 0; round < most; ++round) {
    rates = measure();
    std::size_t at = 0;
    each_rate(rates, [&](const std::string& name, double figure) {
      if (at == best.size()) best.push_back({name});
      BestOfRounds& one = best[at++];
      one.second = std::max(one.second, std::min(figure, one.first));
      one.first = std::max(figure, one.first);
    });
    at = 0;
    internal::each_duration(rates, [&](const char*, double seconds) {
      if (at == least.size()) least.push_back(seconds);
      least[at] = std::min(least[at], seconds);
      ++at;
    });
    unsettled = std::ranges::find_if_not(best, &BestOfRounds::is_settled);
    if (unsettled == best.cend()) break;
  }
  std::size_t at = 0;
  each_rate(rates, [&](const std::string&, double& figure) { figure = best[at++].first; });
  at = 0;
  internal::each_duration(rates, [&](const char*, double& seconds) { seconds = least[at++]; });
  if (unsettled == best.cend()) return {std::move(rates), ""};
  return {std::move(rates),
          fmt::format("the rate of {} did not settle in {} rounds: the best are {:.3g} and {:.3g} "
                      "a second, more than 20 % apart",
                      unsettled->name, most, unsettled->first, unsettled->second)};
}

HostRates measure_settled_rates(const std::function<HostRates()>& measure, int most) {
  RoundsOfRates rounds = measure_rounds(measure, most);
  if (!rounds.unsettled.empty())
    throw Error(ErrorCode::CheckFailed,
                rounds.unsettled + "; other programs use this computer: end them and run again");
  return std::move(rounds.rates);
}

}  // namespace tessera::host
