#include "tessera/planner/internal/two_layouts.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "tessera/base/pass.hpp"
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

// Divides the cases by their kinds. The cheapest plans of each kind are those that a search for
// this kind alone finds, so a request with fewer constraints tries all pairs of one with more, and
// its plan never costs more.
std::vector<std::vector<Case>> by_kind(std::vector<Case> cases) {
  std::vector<std::vector<Case>> kinds;
  for (Case& c : cases) {
    const auto same = std::ranges::find_if(kinds, [&c](const std::vector<Case>& others) {
      return kind_of(others.front()) == kind_of(c);
    });
    (same == kinds.end() ? kinds.emplace_back() : *same).push_back(std::move(c));
  }
  return kinds;
}

// Searches both layouts and keeps the cheapest pair, and in `all`, if it is given, every pair of
// the cheapest plans of any kind.
class LayoutPairs {
 public:
  LayoutPairs(const Asked& asked, std::int64_t fewer_than, Search search,
              std::vector<Plan>* all = nullptr)
      : asked_(asked), fewer_than_(fewer_than), search_(search), all_(all) {
    if (asked.stats != nullptr) turned_ = transposed(*asked.stats);
  }

  void try_pairs(bool grad_w_transposed) {
    const auto [forward, backward] = two_problems(asked_.problem, grad_w_transposed);
    const PatternStats* const turned = turned_ ? &*turned_ : nullptr;
    // Each layout is searched only for plans with fewer cycles than are left for it.
    std::int64_t left = fewer_than_;
    if (fewer_than_ != kUnbounded && !asked_.options.constraints.use_dense) {
      const std::vector<Plan> least = cheapest(backward, turned, fewer_than_, 1);
      if (least.empty()) return;
      left = without(least.front());
    }
    const std::vector<Plan> forwards = cheapest(forward, asked_.stats, left, kPlansOfALayout);
    if (forwards.empty()) return;
    const std::vector<Plan> backwards =
        cheapest(backward, turned, without(forwards.front()), kPlansOfALayout);
    for (const Plan& plan : forwards)
      for (const Plan& other : backwards) try_pair(plan, other);
  }

  PlanResult take() { return std::move(best_); }

 private:
  // Returns the cycles that are left for the other layout.
  std::int64_t without(const Plan& plan) const {
    return fewer_than_ == kUnbounded ? kUnbounded : fewer_than_ - plan.cost.cycles.value;
  }

  // Returns the cheapest plans, the cheapest first: `count` of each kind if that is more than one
  // and only the cheapest pair is asked for.
  std::vector<Plan> cheapest(const Problem& problem, const PatternStats* stats,
                             std::int64_t fewer_than, std::int64_t count) {
    CaseSet set = make_cases({problem, asked_.machine, asked_.options, stats});
    std::vector<std::vector<Case>> kinds;
    if (count > 1 && all_ == nullptr)
      kinds = by_kind(std::move(set.cases));
    else
      kinds.push_back(std::move(set.cases));
    std::vector<Plan> plans;
    for (const std::vector<Case>& cases : kinds) {
      const Ranking ranking =
          rank_plans(cases, search_, {.fewer_than = fewer_than, .count = count});
      best_.evaluations += ranking.evaluations;
      best_.memory_bound = ranking.memory_bound;
      if (ranking.limit_reached) return {};
      for (const RankedPlan& plan : ranking.cheapest)
        plans.push_back(make_plan(*plan.of, plan.at.parts));
    }
    const auto rank = [](const Plan& plan) { return std::pair(plan.cost.cycles, plan.cost.temp); };
    std::ranges::stable_sort(plans, {}, rank);
    return plans;
  }

  void try_pair(const Plan& forward, const Plan& backward) {
    if (all_ == nullptr && (forward.cost.cycles + backward.cost.cycles).value >= fewer_than_)
      return;
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
  Search search_;
  std::vector<Plan>* all_;
  std::optional<PatternStats> turned_;
  PlanResult best_;
};

}  // namespace

PlanResult plan_two_layouts(const Asked& asked, std::int64_t fewer_than, Search search) {
  if (!may_split(asked.problem, asked.options)) return {};
  LayoutPairs pairs(asked, fewer_than, search);
  pairs.try_pairs(/*grad_w_transposed=*/false);
  if (asked.problem.grad_w) pairs.try_pairs(/*grad_w_transposed=*/true);
  return pairs.take();
}

std::vector<Plan> cheapest_pairs(const Asked& asked, Search search) {
  std::vector<Plan> all;
  if (!may_split(asked.problem, asked.options)) return all;
  for (const bool grad_w_transposed : {false, true}) {
    if (grad_w_transposed && !asked.problem.grad_w) break;
    LayoutPairs(asked, kUnbounded, search, &all).try_pairs(grad_w_transposed);
  }
  std::ranges::stable_sort(all, {}, [](const Plan& plan) { return plan.cost.cycles; });
  return all;
}

}  // namespace tessera::planner::internal
