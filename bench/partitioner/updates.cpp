#include "tessera/bench/partitioner/updates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/bench/timing.hpp"
#include "tessera/partitioner/update.hpp"

namespace tessera::bench {
namespace {

// Moves `share` of the blocks to other places: anywhere, or within the first rows of the matrix.
sparse::PatternChange replace(const sparse::Csr<float>& m, double share, bool anywhere) {
  Random random(kPatternSeed);
  const auto count = static_cast<std::int64_t>(share * static_cast<double>(m.blocks()));
  const double reach = anywhere ? 1.0 : std::min(1.0, 4 * share);
  const auto rows = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(reach * static_cast<double>(m.block_rows())));
  std::vector<char> stored(static_cast<std::size_t>(rows * m.block_cols()));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t k = m.row_begin[r]; k < m.row_begin[r + 1]; ++k)
      stored[static_cast<std::size_t>(r * m.block_cols() + m.col[k])] = 1;
  sparse::PatternChange change;
  while (std::ssize(change.removed) < count || std::ssize(change.added) < count) {
    const std::int64_t at = random.below(std::ssize(stored));
    char& state = stored[static_cast<std::size_t>(at)];
    auto& list = state == 1 ? change.removed : change.added;
    if (state == 2 || std::ssize(list) == count) continue;
    list.push_back({static_cast<std::int32_t>(at / m.block_cols()),
                    static_cast<std::int32_t>(at % m.block_cols())});
    state = 2;
  }
  std::sort(change.removed.begin(), change.removed.end());
  std::sort(change.added.begin(), change.added.end());
  return change;
}

struct UpdateTimes {
  double ratio = 0, changed_buckets = 0;
};

UpdateTimes time_update(const Layer& layer, double share, bool anywhere, int repeats = 41) {
  Workload w = make_encoded(layer), target = w;
  const auto change = replace(w.matrix, share, anywhere);
  const sparse::PatternChange back{change.added, change.removed};
  target.matrix = sparse::with_change(w.matrix, change);
  const auto one = sequential();
  Workload live = w, again = w;
  double changed = 0;
  const auto go = [&](const Workload& to, const sparse::PatternChange& by) {
    const auto result = partitioner::update(live.buckets, to.matrix, by, *one);
    if (result.misfit) throw std::runtime_error("an update does not fit");
    partitioner::refill_changed<float, float>(live.buckets, to.matrix.values, live.bucket_values,
                                              result.changed);
    changed = static_cast<double>(result.changed.size());
  };
  go(target, change);
  if (partitioner::decode(live.buckets, std::span<const float>(live.bucket_values)) !=
      target.matrix)
    throw std::runtime_error("an update gives another matrix");
  go(w, back);
  // Encoding and updating alternate between both patterns, so that neither finds its input in a
  // cache that the other filled.
  const auto fresh = [&](const Workload& from) {
    if (partitioner::encode_into(again.buckets, from.matrix, from.grid, *one))
      throw std::runtime_error("the pattern does not fit");
    partitioner::refill<float, float>(again.buckets, from.matrix.values, again.bucket_values, *one);
  };
  const auto t = medians({[&] { fresh(target); }, [&] { go(target, change); }, [&] { go(w, back); },
                          [&] { fresh(w); }},
                         repeats);
  return {(t[0] + t[3]) / (t[1] + t[2]), changed};
}

}  // namespace

void update_ratio(Report& report, const std::string& name, const Layer& layer, bool anywhere) {
  for (const auto& [share, bar] : {std::pair(0.01, 4.0), std::pair(0.1, 1.5)}) {
    const UpdateTimes t = time_update(layer, share, anywhere);
    report.at_least(fmt::format("update of {:.0f} % {}, against a fresh encode", 100 * share, name),
                    t.ratio, bar);
    report.tell("  buckets changed", t.changed_buckets);
  }
}

void slowest_update(Report& report, const std::string& name, const Layer& layer, bool anywhere) {
  constexpr int kRepeats = 31;
  double slowest = 0, at = 0;
  for (const double share : {0.002, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5}) {
    const double by_fresh = 1 / time_update(layer, share, anywhere, kRepeats).ratio;
    if (by_fresh > slowest) {
      slowest = by_fresh;
      at = share;
    }
  }
  report.at_most(fmt::format("slowest update {}, by a fresh encode", name), slowest, 1.05);
  report.tell("  share of the blocks that change, %", 100 * at);
}

}  // namespace tessera::bench
