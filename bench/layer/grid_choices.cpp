#include "tessera/bench/layer/grid_choices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tessera/bench/layer/own_pass.hpp"
#include "tessera/bench/layer/peers.hpp"
#include "tessera/bench/ratios.hpp"
#include "tessera/host/rates.hpp"

namespace tessera::bench {
namespace {

constexpr double kChoiceSeconds = 0.2;   // of timed runs
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
      medians_in_turns({[&] { sparse->run(); }, [&] { dense->run(); }}, kChoiceSeconds);
  const bool takes_dense =
      OwnLayer(c.layer, weights, {.dense = host::DenseChoice::Auto, .rates = rates})
          .layer.is_dense(c.layer.pass);
  return {c, times[0], times[1], takes_dense};
}

}  // namespace

double ChoiceResult::ratio() const {
  return (takes_dense ? dense : sparse) / std::min(sparse, dense);
}

void run_choices(const std::vector<GridCase>& cases, const GridChoice& choice) {
  std::map<std::string, Ratios> groups;
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
    fmt::print("{:<24} {:>6} {:>7.3f} {:>8.1f}% {:>7.3f}\n", name, group.count(), group.mean(),
               group.percent_above(kWrong), group.largest());
}

}  // namespace tessera::bench
