#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <sstream>
#include <stdexcept>

#include "tessera/bench/layer/grid.hpp"
#include "tessera/bench/layer/peers.hpp"
#include "tessera/bench/ratios.hpp"
#include "tessera/host/cpu.hpp"

namespace tessera::bench {
namespace {

constexpr double kLost = 0.95;  // of the best other library's rate, or less

using RatiosByName = std::map<std::string, Ratios>;

void print_groups(const RatiosByName& groups, const char* than) {
  fmt::print("\n{:<44} {:>6} {:>7} {:>6} {:>7}\n", fmt::format("{} by the layer", than), "cases",
             "mean", "lost", "worst");
  for (const auto& [name, group] : groups)
    fmt::print("{:<44} {:>6} {:>7.3f} {:>5.0f}% {:>7.3f}\n", name, group.count(), group.mean(),
               group.percent_below(kLost), group.least());
}

std::string key_of(const GridResult& r) {
  const LayerCase& layer = r.grid_case.layer;
  return layer.type == "float" ? r.grid_case.group : r.grid_case.group + ", " + layer.type;
}

void print_against(const std::vector<GridResult>& results, bool with_mkl) {
  RatiosByName groups, columns, calls;
  for (const GridResult& r : results) {
    if (r.best_sparse(with_mkl).name.empty()) continue;
    groups[key_of(r)].add(r.ratio(with_mkl));
    columns[fmt::format("{}, z {:>4}", key_of(r), r.grid_case.layer.z)].add(r.ratio(with_mkl));
    if (r.call > 0) calls[key_of(r) + ", one call"].add(r.best_sparse(with_mkl).seconds / r.call);
  }
  const char* than = with_mkl ? "best sparse peer, MKL too," : "best sparse peer";
  print_groups(groups, than);
  print_groups(columns, than);
  print_groups(calls, than);
}

void print_lost(const std::vector<GridResult>& results) {
  std::vector<const GridResult*> lost;
  for (const GridResult& r : results)
    if (!r.best_sparse().name.empty() && r.ratio() < kLost) lost.push_back(&r);
  std::sort(lost.begin(), lost.end(),
            [](const GridResult* a, const GridResult* b) { return a->ratio() < b->ratio(); });
  fmt::print("\nlost by more than 5 %: {} of {} cases\n", lost.size(), results.size());
  for (const GridResult* r : lost)
    fmt::print("{:.3f} {:<20} {:>10.2f} us  {}, {}\n", r->ratio(), r->best_sparse().name,
               1e6 * r->layer, r->grid_case.group, r->grid_case.name());
}

// Returns the shard of a case. Every n-th case would often have the same number of columns.
int shard_of(std::uint32_t number, int shards) {
  constexpr std::uint32_t kGoldenRatio = 2654435769;  // 2^32 by it: neighbours land far apart
  return static_cast<int>((number * kGoldenRatio >> 16) % static_cast<std::uint32_t>(shards));
}

}  // namespace

std::string grid_head() { return "group\tcase\tof_peak\tlayer\tcall\tothers"; }

std::string grid_line(const GridResult& r) {
  std::string line =
      fmt::format("{}\t{}\t{:.3f}\t{:.2f}\t{:.2f}\t", r.grid_case.group, r.grid_case.name(),
                  r.flops / r.layer / r.peak, 1e6 * r.layer, 1e6 * r.call);
  for (const GridResult::Other& other : r.others)
    line += fmt::format("{}{}={:.2f}", &other == &r.others.front() ? "" : ";", other.name,
                        1e6 * other.seconds);
  return line;
}

void print_grid_summary(const std::vector<GridResult>& results) {
  print_against(results, false);
  const bool has_mkl = std::any_of(results.begin(), results.end(), [](const GridResult& r) {
    return r.best_sparse(true).name == "MKL";
  });
  if (has_mkl) print_against(results, true);
  print_lost(results);
}

GridChoice parse_shard(const std::string& text) {
  GridChoice choice;
  char by = 0;
  std::istringstream stream(text);
  if (!(stream >> choice.shard >> by >> choice.shards) || by != '/' || !stream.eof() ||
      choice.shard < 1 || choice.shard > choice.shards)
    throw std::runtime_error("--shard \"" + text + "\"; give it as 1/12 to 12/12");
  --choice.shard;
  return choice;
}

void for_chosen(const std::vector<GridCase>& cases, const GridChoice& choice,
                const std::function<void(const GridCase&)>& run) {
  std::uint32_t number = 0;
  for (const GridCase& c : cases)
    if ((c.group + " " + c.name()).find(choice.only) != std::string::npos &&
        shard_of(number++, choice.shards) == choice.shard)
      run(c);
}

void run_grid(const std::vector<GridCase>& cases, const GridChoice& choice) {
  std::vector<GridResult> results;
  fmt::print("# {}; OpenBLAS has kernels for: {}\n{}\n", host::host_cpu_model(),
             open_blas_kernels(), grid_head());
  for_chosen(cases, choice, [&](const GridCase& c) {
    results.push_back(run_grid_case(c));
    fmt::print("{}\n", grid_line(results.back()));
    std::fflush(stdout);
  });
  print_grid_summary(results);
}

}  // namespace tessera::bench
