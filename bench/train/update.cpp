#include "tessera/bench/train/update.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/bench/timing.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::bench {
namespace {

using sparse::BlockAt;
using sparse::Csr;
using sparse::PatternChange;

constexpr std::int64_t kSide = 4096;

// Keeps `count` random ones of the places, in their order.
void keep(std::vector<BlockAt>& places, std::int64_t count, Random& random) {
  std::vector<BlockAt> kept;
  auto left = std::ssize(places);
  for (const BlockAt at : places)
    if (random.below(left--) < count - std::ssize(kept)) kept.push_back(at);
  places = std::move(kept);
}

// Moves a share of all blocks to random places.
PatternChange scattered(const Csr<float>& from, double share) {
  Random random(5);
  const double density = double(from.blocks()) / double(from.block_rows() * from.block_cols());
  PatternChange change = sparse::difference(
      from, sparse::random_pattern(from.rows, from.cols, from.block, density, 17));
  const auto count = std::llround(share * double(from.blocks()));
  keep(change.removed, count, random);
  keep(change.added, count, random);
  return change;
}

// Moves all elements of a share of the rows, which are neighbours, within their rows.
PatternChange in_some_rows(const Csr<float>& from, double share) {
  const PatternChange all = scattered(from, 0.5);
  const auto first = std::int32_t(from.block_rows() / 3);
  const auto end = first + std::int32_t(std::llround(share * double(from.block_rows())));
  PatternChange change;
  for (const BlockAt at : all.removed)
    if (at.row >= first && at.row < end) change.removed.push_back(at);
  for (const BlockAt at : all.added)
    if (at.row >= first && at.row < end) change.added.push_back(at);
  const std::size_t count = std::min(change.removed.size(), change.added.size());
  change.removed.resize(count);
  change.added.resize(count);
  return change;
}

struct Bar {
  const char* name;
  std::int64_t block;
  PatternChange (*change)(const Csr<float>&, double);
  double share, at_most;
};

const std::vector<Bar> kBars = {
    {"blocks of 16 moved anywhere", 16, scattered, 0.01, 0.1},
    {"blocks of 16 moved anywhere", 16, scattered, 0.1, 0.4},
    {"blocks of 16 moved anywhere", 16, scattered, 0.3, 1.05},
    {"rows of elements moved", 1, in_some_rows, 0.01, 0.1},
    {"rows of elements moved", 1, in_some_rows, 0.1, 0.4},
    {"elements moved anywhere", 1, scattered, 0.01, 1.05},
    {"elements moved anywhere", 1, scattered, 0.1, 1.05},
    {"elements moved anywhere", 1, scattered, 0.3, 1.05},
};

}  // namespace

void update_bars(Report& report) {
  const auto executor = sequential();
  for (const Bar& bar : kBars) {
    const BlockShape block{bar.block, bar.block};
    const Csr<float> weights = sparse::random_pattern(kSide, kSide, block, 0.1, 3);
    host::HostLayer updated({.size = {1, kSide, kSide, 128},
                             .block = block,
                             .density = 0.1,
                             .data_type = DataType::Float,
                             .grad_a = true,
                             .grad_w = true},
                            host::read_host_cpu(), *executor);
    updated.set_weights(weights);
    PatternChange next = bar.change(weights, bar.share);
    const auto times = medians({[&] {
                                  updated.update_weights(next);
                                  std::swap(next.removed, next.added);
                                },
                                [&] { updated.set_weights(updated.weights()); }});
    report.at_most(
        fmt::format("update_weights by set_weights, {}, {:g} %", bar.name, 100 * bar.share),
        times[0] / times[1], bar.at_most);
    report.tell("  its ms", 1e3 * times[0]);
  }
}

}  // namespace tessera::bench
