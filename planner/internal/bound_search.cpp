#include "tessera/planner/internal/bound_search.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "tessera/planner/internal/lower_bound.hpp"

namespace tessera::planner::internal {
namespace {

bool comes_before(const RankedPlan& a, const RankedPlan& b) {
  if (a.at.cycles != b.at.cycles) return a.at.cycles < b.at.cycles;
  const auto key = [](const RankedPlan& p) {
    return std::tuple(p.at.temp, p.of, p.at.parts.x, p.at.parts.y, p.at.parts.z);
  };
  return key(a) < key(b);
}

// Adds a plan in its place, and keeps the cheapest of plans of the same buckets.
void add_plan(std::vector<RankedPlan>& ranked, const RankedPlan& plan) {
  const auto is_the_same = [&plan](const RankedPlan& other) {
    return other.at.parts == plan.at.parts &&
           other.of->candidate.block == plan.of->candidate.block &&
           other.of->candidate.dense == plan.of->candidate.dense;
  };
  const auto same = std::ranges::find_if(ranked, is_the_same);
  if (same != ranked.end()) {
    if (comes_before(*same, plan)) return;
    ranked.erase(same);
  }
  ranked.insert(std::ranges::upper_bound(ranked, plan, comes_before), plan);
}

std::int64_t least_cycles(const std::vector<std::vector<RankedPlan>>& found) {
  std::int64_t least = kUnbounded;
  for (const std::vector<RankedPlan>& plans : found)
    if (!plans.empty()) least = std::min(least, plans.front().at.cycles);
  return least;
}

}  // namespace

BoundSearch::BoundSearch(const std::vector<Case>& cases, std::int64_t temp_bound,
                         const Wanted& wanted, std::vector<std::size_t> kinds)
    : cases_(cases), temp_bound_(temp_bound), wanted_(wanted), kinds_(std::move(kinds)) {
  kinds_.resize(cases.size());
  found_.resize(std::ranges::max(kinds_) + 1);
  for (std::size_t i = 0; i < cases.size(); ++i)
    if (const auto box = whole_box(cases[i])) open({.box = *box, .of = i});
  drop_unwanted();
}

std::int64_t BoundSearch::least() const {
  const std::int64_t least = least_cycles(found_);
  return open_.empty() ? least : std::min(least, open_.front().cycles);
}

bool BoundSearch::is_settled() const {
  return open_.empty() || least_cycles(found_) <= open_.front().cycles;
}

void BoundSearch::advance() {
  std::ranges::pop_heap(open_, comes_later);
  const PricedBox next = open_.back();
  open_.pop_back();
  if (is_wanted(next.of, {next.box.lo, next.cycles, next.temp})) {
    if (next.box.is_point())
      price(next);
    else
      for (const Box& part : parts_of(next.box)) open({.box = part, .of = next.of});
  }
  drop_unwanted();
}

void BoundSearch::finish() {
  while (!open_.empty()) advance();
}

void BoundSearch::lower_limit(std::int64_t fewer_than) {
  wanted_.fewer_than = std::min(wanted_.fewer_than, fewer_than);
  for (std::vector<RankedPlan>& plans : found_)
    std::erase_if(plans,
                  [&](const RankedPlan& plan) { return plan.at.cycles >= wanted_.fewer_than; });
  drop_unwanted();
}

bool BoundSearch::comes_later(const PricedBox& a, const PricedBox& b) {
  if (a.cycles != b.cycles) return a.cycles > b.cycles;
  const auto key = [](const PricedBox& of) {
    const auto& [lo, hi] = of.box;
    return std::tuple(of.temp, of.of, lo.x, lo.y, lo.z, hi.x, hi.y, hi.z);
  };
  return key(a) > key(b);
}

// Returns true if a partition of a case with this key, or above it, may still be wanted.
bool BoundSearch::is_wanted(std::size_t of, const PricedParts& least) const {
  if (least.temp > temp_bound_ || least.cycles >= wanted_.fewer_than) return false;
  const std::vector<RankedPlan>& plans = found_[kinds_[of]];
  return std::ssize(plans) < wanted_.count || comes_before({&cases_[of], least}, plans.back());
}

// Opens a part of a box if it is worth it.
void BoundSearch::open(PricedBox part) {
  const Case& c = cases_[part.of];
  limit_reached_ = limit_reached_ || examined_ >= c.options.search_limit;
  if (limit_reached_) return;
  ++examined_;
  if (!narrow(c, part.box)) return;
  const Bound bound = lower_bound(c, part.box);
  part.cycles = bound.cycles;
  part.temp = bound.temp;
  if (!bound.possible || !is_wanted(part.of, {part.box.lo, part.cycles, part.temp})) return;
  open_.push_back(part);
  std::ranges::push_heap(open_, comes_later);
}

void BoundSearch::price(const PricedBox& point) {
  ++evaluations_;
  const Case& c = cases_[point.of];
  const PartsCost cost = cost_of(c, point.box.lo);
  const RankedPlan plan{&c, {point.box.lo, cost.cycles, cost.temp}};
  if (!cost.legal || !is_wanted(point.of, plan.at)) return;
  std::vector<RankedPlan>& plans = found_[kinds_[point.of]];
  add_plan(plans, plan);
  if (std::ssize(plans) > wanted_.count) plans.pop_back();
}

// Drops all open boxes if nothing in them is wanted.
void BoundSearch::drop_unwanted() {
  if (open_.empty()) return;
  const auto is_full = [this](const std::vector<RankedPlan>& plans) {
    return std::ssize(plans) >= wanted_.count && plans.back().at.cycles < open_.front().cycles;
  };
  const bool is_found =
      wanted_.any && std::ranges::any_of(found_, [](const auto& plans) { return !plans.empty(); });
  if (limit_reached_ || is_found || open_.front().cycles >= wanted_.fewer_than ||
      std::ranges::all_of(found_, is_full))
    open_.clear();
}

Ranking rank_by_bounds(const std::vector<Case>& cases, std::int64_t temp_bound,
                       const Wanted& wanted) {
  BoundSearch search(cases, temp_bound, wanted);
  search.finish();
  return {search.found().front(), search.limit_reached(), search.evaluations(), Bytes(temp_bound)};
}

}  // namespace tessera::planner::internal
