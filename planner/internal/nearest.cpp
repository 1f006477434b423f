#include "tessera/planner/internal/nearest.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/printable.hpp"

namespace tessera::planner::internal {

void survey(const Case& c, const std::function<void(const Sight&)>& visit) {
  visit_partitions(c, [&](Dims parts) {
    const Cut cut = make_cut(c, parts);
    const BucketSize bucket = bucket_size(c, cut);
    const Estimate e = estimate(c, cut, bucket);
    visit({c, parts, cut, e, words_fit(c, cut, bucket)});
  });
}

LargestStep largest_step(const Estimate& e) {
  LargestStep largest;
  for (std::size_t p = 0; p < e.pass_count; ++p)
    for (std::size_t s = 0; s < e.passes[p].count; ++s) {
      const Step& step = e.passes[p].steps[s];
      if (step.temp > largest.temp || s + p == 0)
        largest = {e.passes[p].pass, step.term, step.temp};
    }
  return largest;
}

namespace {

// The needs of a partition as multiples of what is available. A limit is broken above 1.
struct Excess {
  double words = 0, temp = 0, tile = 0;
  double worst() const { return std::max({words, temp, tile}); }
};

double ratio(std::int64_t need, std::int64_t available) {
  return static_cast<double>(need) / static_cast<double>(std::max<std::int64_t>(available, 1));
}

double words_excess(const Case& c, const Cut& cut, const BucketSize& bucket) {
  return ratio(largest_stored(c, cut, bucket).value, most_in_word(c));
}

Excess excess_of(const Sight& s, std::int64_t temp_bound) {
  Excess excess;
  excess.words = words_excess(s.c, s.cut, s.e.bucket);
  excess.temp = ratio(s.e.temp, temp_bound);
  if (!s.c.parity()) excess.tile = ratio(s.total(), s.c.machine.tile_memory.value);
  return excess;
}

TileNeed tile_need(const Case& c, const Estimate& e) {
  TileNeed need;
  need.values = Bytes(e.bucket.values * c.input_bytes() * (1 + c.problem.grad_w));
  need.meta_info = Bytes((e.bucket.fwd_words + e.bucket.grad_a_words) * c.word_bytes());
  need.operands = Bytes(e.resident) - need.values - need.meta_info;
  const LargestStep largest = largest_step(e);
  need.step = Bytes(largest.temp);
  need.pass = largest.pass;
  need.step_term = largest.term;
  return need;
}

}  // namespace

Nearness nearness(const Case& c, std::int64_t temp_bound) {
  Nearness near;
  visit_partitions(c, [&](Dims parts) {
    const Cut cut = make_cut(c, parts);
    // Most partitions of a large layer are too far off by their words alone to be worth pricing,
    // and most of these even without the words of their buckets.
    if (near.parts && words_excess(c, cut, {}) > std::max(near.excess, 1.0)) return;
    const BucketSize bucket = bucket_size(c, cut);
    const bool fit = words_fit(c, cut, bucket);
    if (!fit && near.parts && words_excess(c, cut, bucket) > near.excess) return;
    const Estimate e = estimate(c, cut, bucket);
    const Sight s{c, parts, cut, e, fit};
    const double excess = excess_of(s, temp_bound).worst();
    if (!near.parts || excess < near.excess || (excess == near.excess && e.cycles < near.cycles)) {
      near.parts = parts;
      near.excess = excess;
      near.cycles = e.cycles;
    }
    if (!fit) return;
    near.any_words_fit = true;
    near.least_temp = std::min(near.least_temp, e.temp);
    if (s.tile_holds()) near.least_temp_in_tile = std::min(near.least_temp_in_tile, e.temp);
  });
  return near;
}

Obstacle obstacle_of(const Case& c, const Nearness& near, std::int64_t temp_bound) {
  Obstacle o;
  o.methods = choice_of(c);
  if (!near.parts) {
    o.what = "no partition has the pinned counts";
    o.available = c.machine.tiles;
    return o;
  }
  const Cut cut = make_cut(c, *near.parts);
  const Estimate e = estimate(c, cut, bucket_size(c, cut));
  const Excess excess = excess_of({c, *near.parts, cut, e, true}, temp_bound);
  o.partition = *near.parts;
  o.tile = tile_need(c, e);
  o.what = fmt::format("{}, {}", to_string(o.tile.pass), to_string(o.tile.step_term));
  if (excess.words == excess.worst()) {
    const StoredNumber largest = largest_stored(c, cut, e.bucket);
    o.limit = LimitKind::Words;
    o.what = largest.name;
    o.needed = largest.value;
    o.available = most_in_word(c);
  } else if (excess.temp == excess.worst()) {
    o.limit = LimitKind::TemporaryMemory;
    o.needed = e.temp;
    o.available = temp_bound;
  } else {
    o.limit = LimitKind::TileMemory;
    o.needed = e.temp + e.resident;
    o.available = c.machine.tile_memory.value;
  }
  return o;
}

std::size_t nearest_of(const std::vector<Nearness>& nears) {
  const auto nearer = [](const Nearness& a, const Nearness& b) {
    if (a.parts.has_value() != b.parts.has_value()) return a.parts.has_value();
    return a.excess != b.excess ? a.excess < b.excess : a.cycles < b.cycles;
  };
  return std::size_t(std::ranges::min_element(nears, nearer) - nears.begin());
}

MethodChoice choice_of(const Case& c) {
  MethodChoice choice;
  choice.fwd = c.candidate.fwd;
  if (c.problem.grad_a) choice.grad_a = c.candidate.grad_a;
  if (c.problem.grad_w) choice.grad_w = c.candidate.grad_w;
  choice.grad_w_exchange_buckets = c.candidate.exchange_buckets;
  choice.block = c.problem.block;
  choice.grain = c.candidate.grain;
  choice.use_dense = c.candidate.dense;
  return choice;
}

std::string request_text(const Problem& problem, const device::Machine& machine) {
  return fmt::format("{} on {} ({} tiles of {} bytes)", to_string(problem), printable(machine.name),
                     machine.tiles, machine.tile_memory.value);
}

}  // namespace tessera::planner::internal
