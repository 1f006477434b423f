#include "tessera/bench/layer/grid_choices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tessera/bench/layer/own_pass.hpp"
#include "tessera/bench/layer/peers.hpp"
#include "tessera/host/rates.hpp"

namespace tessera::bench {
namespace {

constexpr double kCaseSeconds = 0.2;     // of timed runs
constexpr double kMostDenseFlops = 8e9;  // about a tenth of a second on one thread
constexpr double kWrong = 1.1;           // more than the error of a time

double dense_flops(const GridCase& c, const sparse::Csr<float>& weights) {
  return 2 * double(weights.rows) * double(weights.cols) * double(c.layer.z);
}

ChoiceResult compare(const GridCase& c, const sparse::Csr<float>& weights) {
  static const host::HostRates rates = host::measure_settled_rates();
  const auto pass_with = [&](host::DenseChoice dense) {
    return std::make_unique<OwnPass<float>>(c.layer, weights, c.batch_first,
                                            host::HostOptions{.dense = dense, .rates = rates});
  };
  const auto sparse = pass_with(host::DenseChoice::Never);
  const auto dense = pass_with(host::DenseChoice::Always);
  const std::vector<double> times =
      medians_in_turns({[&] { sparse->run(); }, [&] { dense->run(); }}, kCaseSeconds);
  const bool takes_dense =
      OwnLayer(c.layer, weights, {.dense = host::DenseChoice::Auto, .rates = rates})
          .layer.is_dense(c.layer.pass);
  return {c, times[0], times[1], takes_dense};
}

struct Tally {
  double logs = 0, worst = 1;
  int count = 0, wrong = 0;

  void add(double ratio) {
    logs += std::log(ratio);
    worst = std::max(worst, ratio);
    ++count;
    wrong += ratio > kWrong ? 1 : 0;
  }
};

}  // namespace

double ChoiceResult::ratio() const {
  return (takes_dense ? dense : sparse) / std::min(sparse, dense);
}

void run_choices(const std::vector<GridCase>& cases, const GridChoice& choice) {
  std::map<std::string, Tally> groups;
  fmt::print("group\tcase\tsparse\tdense\tchosen\tratio\n");
  for_chosen(cases, choice, [&](const GridCase& c) {
    const sparse::Csr<float> weights = grid_weights(c);
    if (c.layer.type != "float" || dense_flops(c, weights) > kMostDenseFlops) return;
    const ChoiceResult r = compare(c, weights);
    fmt::print("{}\t{}\t{:.2f}\t{:.2f}\t{}\t{:.3f}\n", c.group, c.name(), 1e6 * r.sparse,
               1e6 * r.dense, r.takes_dense ? "dense" : "sparse", r.ratio());
    std::fflush(stdout);
    groups[c.group].add(r.ratio());
    groups["all"].add(r.ratio());
  });
  fmt::print("\n{:<24} {:>6} {:>7} {:>9} {:>7}\n", "chosen by the faster", "cases", "mean",
             "above 1.1", "worst");
  for (const auto& [name, group] : groups)
    fmt::print("{:<24} {:>6} {:>7.3f} {:>8.1f}% {:>7.3f}\n", name, group.count,
               std::exp(group.logs / group.count), 100.0 * group.wrong / group.count, group.worst);
}

}  // namespace tessera::bench
