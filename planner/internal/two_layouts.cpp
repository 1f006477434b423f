#include "tessera/planner/internal/two_layouts.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "tessera/base/pass.hpp"
#include "tessera/planner/internal/bound_search.hpp"
#include "tessera/planner/layouts.hpp"

namespace tessera::planner::internal {

bool may_split(const Problem& problem, const Options& options) {
  const PlanConstraints& pins = options.constraints;
  const bool pinned = pins.x || pins.y || pins.z || options.shared_buckets;
  return problem.grad_a && !pinned && !options.poplibs_parity && options.per_pass_plans;
}

namespace {

PassCost grad_a_cost(const Plan& backward, const RehomeCost& move) {
  PassCost cost = backward.cost.passes.front();
  cost.pass = Pass::GradA;
  cost.terms.insert(cost.terms.begin(), {Term::RehomeValues, move.cycles, move.temp});
  cost.terms.back().cycles += move.overhead;  // barriers and launches
  return cost;
}

// Returns the bytes of the buckets alone, which one layout adds to the tiles of the other.
Bytes bucket_bytes(const Plan& plan, const Problem& problem, const device::Machine& machine) {
  const std::int64_t words = plan.fwd_meta_words.value + plan.grad_a_meta_words.value;
  const std::int64_t values = plan.nonzeros_per_bucket * bytes_of(problem.data_type);
  return Bytes(words * machine.word_bits / 8 + values * (1 + problem.grad_w));
}

}  // namespace

std::optional<Plan> joined(Plan forward, const Plan& backward, const Problem& problem,
                           const device::Machine& machine, Bytes temp_bound) {
  const RehomeCost move = rehome_cost(forward, backward, problem, machine);
  PlanCost cost;
  cost.add(forward.cost.passes.front());
  cost.add(grad_a_cost(backward, move));
  if (problem.grad_w) {
    const PassCost* in_forward = forward.cost.find(Pass::GradW);
    cost.add(in_forward != nullptr ? *in_forward : *backward.cost.find(Pass::GradW));
  }
  cost.resident = std::max(forward.cost.resident + bucket_bytes(backward, problem, machine),
                           backward.cost.resident + bucket_bytes(forward, problem, machine)) +
                  move.table;
  if (cost.temp > temp_bound || cost.temp + cost.resident > machine.tile_memory) return {};
  forward.cost = std::move(cost);
  forward.backward = {backward};
  return forward;
}

namespace {

// The methods of a case that an option can forbid.
struct Kind {
  bool dense = false, exchange_buckets = false, rearranges = false;
  friend bool operator==(const Kind&, const Kind&) = default;
};

Kind kind_of(const Case& c) {
  const Candidate& methods = c.candidate;
  return {methods.dense, methods.exchange_buckets, methods.grad_w == Method::BlockGradWAmp};
}

// Returns the kind of every case, counted from 0.
std::vector<std::size_t> kinds_of(const std::vector<Case>& cases) {
  std::vector<Kind> known;
  std::vector<std::size_t> kinds;
  for (const Case& c : cases) {
    const auto same = std::ranges::find(known, kind_of(c));
    kinds.push_back(std::size_t(same - known.begin()));
    if (same == known.end()) known.push_back(kind_of(c));
  }
  return kinds;
}

// The search for the cheapest plans of one layout.
class LayoutSearch {
 public:
  // With `by_kind`, it finds the cheapest plans of each kind, which are those that a search for
  // this kind alone finds. So a request with fewer constraints tries all pairs of one with more,
  // and its plan never costs more.
  LayoutSearch(const Asked& asked, std::int64_t fewer_than, bool by_kind)
      : set_(make_cases(asked)),
        search_(set_.cases, temp_bounds(asked.machine, asked.options).front(),
                {.fewer_than = fewer_than, .count = kPlansOfALayout},
                by_kind ? kinds_of(set_.cases) : std::vector<std::size_t>{}) {}

  BoundSearch& search() { return search_; }

  // Finishes the search for plans below a limit and returns them, the cheapest first.
  std::vector<Plan> below(std::int64_t limit) {
    search_.lower_limit(limit);
    search_.finish();
    std::vector<Plan> plans;
    if (search_.limit_reached()) return plans;
    for (const std::vector<RankedPlan>& of_kind : search_.found())
      for (const RankedPlan& plan : of_kind) plans.push_back(make_plan(*plan.of, plan.at.parts));
    const auto rank = [](const Plan& plan) { return std::pair(plan.cost.cycles, plan.cost.temp); };
    std::ranges::stable_sort(plans, {}, rank);
    return plans;
  }

 private:
  CaseSet set_;
  BoundSearch search_;  // in the cases of the set
};

// Searches both layouts and keeps the cheapest pair, and in `all`, if it is given, every pair of
// the cheapest plans of any kind.
class LayoutPairs {
 public:
  LayoutPairs(const Asked& asked, std::int64_t fewer_than, std::vector<Plan>* all = nullptr)
      : asked_(asked), fewer_than_(fewer_than), all_(all) {
    if (asked.stats != nullptr) turned_ = transposed(*asked.stats);
    best_.memory_bound = Bytes(temp_bounds(asked.machine, asked.options).front());
  }

  void try_pairs(bool grad_w_transposed) {
    const auto [forward, backward] = two_problems(asked_.problem, grad_w_transposed);
    LayoutSearch here = search_of(forward, asked_.stats),
                 there = search_of(backward, turned_ ? &*turned_ : nullptr);
    if (may_pair(here.search(), there.search())) join_all(here, there);
    for (const BoundSearch* search : {&here.search(), &there.search()}) {
      best_.evaluations += search->evaluations();
      limit_reached_ |= search->limit_reached();
    }
  }

  PlanResult take() {
    if (limit_reached_) best_.status = PlanStatus::LimitReached;
    return std::move(best_);
  }

 private:
  LayoutSearch search_of(const Problem& problem, const PatternStats* stats) const {
    return {{problem, asked_.machine, asked_.options, stats}, fewer_than_, all_ == nullptr};
  }

  // Searches both layouts in turns until the cheapest plan of each is known, or until it is certain
  // that no pair costs few enough cycles or a limit of a search is reached, for which it returns
  // false.
  bool may_pair(BoundSearch& here, BoundSearch& there) const {
    if (fewer_than_ == kUnbounded) return true;
    while (here.least() < without(there.least())) {
      if (here.is_settled() && there.is_settled()) return true;
      for (BoundSearch* search : {&here, &there}) {
        if (!search->is_settled()) search->advance();
        if (search->limit_reached()) return false;
      }
    }
    return false;
  }

  // Returns the cycles that are left for the other layout.
  std::int64_t without(std::int64_t cycles) const {
    return fewer_than_ == kUnbounded ? kUnbounded : fewer_than_ - cycles;
  }

  // Tries all pairs of the cheapest plans of both layouts.
  void join_all(LayoutSearch& here, LayoutSearch& there) {
    const std::vector<Plan> forwards = here.below(without(there.search().least()));
    if (forwards.empty()) return;
    const std::vector<Plan> backwards = there.below(without(forwards.front().cost.cycles.value));
    for (const Plan& plan : forwards)
      for (const Plan& other : backwards) try_pair(plan, other);
  }

  void try_pair(const Plan& forward, const Plan& backward) {
    const auto costs_too_much = [&] {
      Cycles least = forward.cost.cycles + backward.cost.cycles;
      if (least.value >= fewer_than_) return true;
      least += least_rehome_cycles(forward, backward, asked_.problem, asked_.machine);
      return least.value >= fewer_than_;
    };
    if (all_ == nullptr && costs_too_much()) return;
    auto plan = joined(forward, backward, asked_.problem, asked_.machine, best_.memory_bound);
    if (plan && all_ != nullptr) all_->push_back(*plan);
    if (!plan || plan->cost.cycles.value >= fewer_than_) return;
    fewer_than_ = plan->cost.cycles.value;
    best_.status = PlanStatus::Found;
    best_.has_plan = true;
    best_.plan = std::move(*plan);
  }

  const Asked& asked_;
  std::int64_t fewer_than_;
  std::vector<Plan>* all_;
  std::optional<PatternStats> turned_;
  PlanResult best_;
  bool limit_reached_ = false;
};

}  // namespace

PlanResult plan_two_layouts(const Asked& asked, std::int64_t fewer_than) {
  if (!may_split(asked.problem, asked.options)) return {};
  LayoutPairs pairs(asked, fewer_than);
  pairs.try_pairs(/*grad_w_transposed=*/false);
  if (asked.problem.grad_w) pairs.try_pairs(/*grad_w_transposed=*/true);
  return pairs.take();
}

std::vector<Plan> cheapest_pairs(const Asked& asked) {
  std::vector<Plan> all;
  if (!may_split(asked.problem, asked.options)) return all;
  for (const bool grad_w_transposed : {false, true}) {
    if (grad_w_transposed && !asked.problem.grad_w) break;
    LayoutPairs(asked, kUnbounded, &all).try_pairs(grad_w_transposed);
  }
  std::ranges::stable_sort(all, {}, [](const Plan& plan) { return plan.cost.cycles; });
  return all;
}

}  // namespace tessera::planner::internal
