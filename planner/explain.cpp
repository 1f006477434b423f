#include "tessera/planner/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/float_mode.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/planner/internal/dense_layer.hpp"
#include "tessera/planner/internal/nearest.hpp"
#include "tessera/planner/internal/overview.hpp"
#include "tessera/planner/internal/planner_search.hpp"
#include "tessera/planner/internal/two_layouts.hpp"
#include "tessera/planner/layouts.hpp"

namespace tessera::planner {
namespace {

using internal::Asked;
using internal::Case;
using internal::Found;

constexpr std::size_t kRunnersUp = 3;
constexpr std::int64_t kMostTiles = 1'048'576;  // the most that device::Machine allows

const CostTerm* term_named(const PassCost* pass, Term name) {
  return pass == nullptr ? nullptr : pass->find(name);
}

// Returns, for every term of either plan, the cycles that `to` takes more. Terms are identified by
// pass and name.
std::vector<TermChange> changes(const PlanCost& from, const PlanCost& to) {
  std::vector<TermChange> result;
  for (const PassCost& pass : from.passes)
    for (const CostTerm& term : pass.terms) {
      const CostTerm* other = term_named(to.find(pass.pass), term.name);
      result.push_back(
          {pass.pass, term.name, (other == nullptr ? Cycles{} : other->cycles) - term.cycles});
    }
  for (const PassCost& pass : to.passes)
    for (const CostTerm& term : pass.terms)
      if (term_named(from.find(pass.pass), term.name) == nullptr)
        result.push_back({pass.pass, term.name, term.cycles});
  return result;
}

Alternative alternative(const MethodChoice& methods, Plan plan, const Plan& winner) {
  Alternative other{methods, std::move(plan), {}, {}};
  other.loses = other.plan.cost.cycles - winner.cost.cycles;
  other.terms = changes(winner.cost, other.plan.cost);
  std::erase_if(other.terms, [](const TermChange& t) { return t.more.value == 0; });
  std::ranges::stable_sort(other.terms, std::ranges::greater{}, &TermChange::more);
  return other;
}

Alternative alternative(const Case& c, Dims parts, const Plan& winner) {
  return alternative(internal::choice_of(c), internal::make_plan(c, parts), winner);
}

// Returns the partition with the next larger legal count along one axis, on a machine of any size
// and without pins.
std::optional<Dims> cut_finer(Case c, Dims parts, Axis axis) {
  c.options.constraints = {};
  c.machine.tiles = internal::kUnbounded;
  const std::int64_t most = std::min(along(c.grains, axis), kMostTiles);
  std::int64_t& count = along(parts, axis);
  while (++count <= most)
    if (internal::partition_is_legal(c, parts)) return parts;
  return {};
}

void add_finer_cuts(const Case& c, Plan plan, std::vector<TermShare>& terms) {
  for (const Axis axis : {Axis::X, Axis::Y, Axis::Z}) {
    std::optional<Dims> finer = cut_finer(c, plan.partition, axis);
    if (!finer) continue;
    const Plan other = internal::make_plan(c, *finer);
    const std::vector<TermChange> change = changes(plan.cost, other.cost);
    for (std::size_t i = 0; i < terms.size(); ++i)
      terms[i].finer_cut.push_back(
          {axis, along(plan.partition, axis), along(*finer, axis), change[i].more});
  }
}

// Returns the terms without finer cuts.
std::vector<TermShare> shares_of(const Plan& plan) {
  std::vector<TermShare> terms;
  const auto all = static_cast<double>(plan.cost.cycles.value);
  for (const PassCost& pass : plan.cost.passes)
    for (const CostTerm& term : pass.terms) {
      const double share = all == 0 ? 0 : static_cast<double>(term.cycles.value) / all;
      terms.push_back({pass.pass, term.name, term.cycles, share, term.temp, {}});
    }
  return terms;
}

const Case& case_of(const std::vector<Case>& cases, const Plan& plan) {
  for (const Case& c : cases)
    if (internal::partition_is_legal(c, plan.partition) &&
        internal::make_plan(c, plan.partition) == plan)
      return c;
  throw_invalid(
      fmt::format("the plan at {} is none of the request ({}); explain the plan that plan() "
                  "returned for the same layer, machine, options and statistics",
                  to_string(plan.partition), to_string(cases.front().problem)));
}

// Returns the options that plan() used: it plans a layer without non-zeros on one tile if that can
// hold it.
Options effective(const Asked& asked, const Plan& plan) {
  Options options = asked.options;
  PlanConstraints& pins = options.constraints;
  if (asked.problem.density == 0 && !pins.x && !pins.y && !pins.z &&
      plan.partition == Dims{asked.problem.size.g, 1, 1, 1})
    pins.x = pins.y = pins.z = 1;
  return options;
}

MethodVerdict verdict(const Case& c, const Found& best, const Explanation& e) {
  MethodVerdict v;
  v.methods = internal::choice_of(c);
  v.chosen = v.methods == e.methods;
  if (best.c != nullptr)
    v.best = alternative(c, best.parts, e.plan);
  else
    v.obstacle =
        internal::obstacle_of(c, internal::nearness(c, e.temp_bound.value), e.temp_bound.value);
  return v;
}

void lift(LiftedLimit limit, const Found& best, Explanation& e) {
  if (best.c == nullptr) return;
  const Cycles gain = std::max(Cycles(), e.plan.cost.cycles - Cycles(best.cycles));
  e.limits.push_back({limit, gain, internal::choice_of(*best.c), best.parts});
}

PlanResult plan_one_layout(const Asked& asked) {
  Options one_layout = asked.options;
  one_layout.per_pass_plans = false;
  return internal::plan_with_buckets(asked.with(one_layout));
}

// Plans the changed request, with one layout, and appends the result.
void lift_by_planning(LiftedLimit limit, const Asked& asked, Explanation& e) {
  const PlanResult result = plan_one_layout(asked);
  if (!result.has_plan) return;
  const internal::CaseSet set = internal::make_cases(asked);
  // PopLibs' doubling of tiles may end at a smaller bound on the larger machine.
  const Cycles gain = std::max(Cycles(), e.plan.cost.cycles - result.plan.cost.cycles);
  e.limits.push_back(
      {limit, gain, internal::choice_of(case_of(set.cases, result.plan)), result.plan.partition});
}

// Calls lift(limit, changed request) for the same layer on machines with more tiles.
template <class Lift>
void lift_tiles(const Asked& asked, const Lift& lift) {
  device::Machine larger = asked.machine;
  for (const auto& [limit, tiles] : {std::pair{LiftedLimit::OneMoreTile, asked.machine.tiles + 1},
                                     {LiftedLimit::TwiceTheTiles, asked.machine.tiles * 2}}) {
    if (tiles > kMostTiles) continue;
    larger.tiles = tiles;
    lift(limit, Asked{asked.problem, larger, asked.options, asked.stats});
  }
}

void lift_options(const Asked& asked, Explanation& e) {
  Options options = asked.options;
  options.constraints = {};
  if (options != asked.options) lift_by_planning(LiftedLimit::Pins, asked.with(options), e);
  options = asked.options;
  options.shared_buckets.reset();
  if (asked.options.shared_buckets && asked.problem.is_element_wise() && asked.problem.grad_a)
    lift_by_planning(LiftedLimit::BucketSharing, asked.with(options), e);
}

std::int64_t bound_of(const Asked& asked, const Plan& plan) {
  for (const std::int64_t bound : internal::temp_bounds(asked.machine, asked.options))
    if (plan.cost.temp.value <= bound) return bound;
  throw_invalid(
      fmt::format("the plan takes {} bytes of temporary memory, more than "
                  "availableMemoryProportion {} of {} bytes",
                  plan.cost.temp.value, asked.options.available_memory_proportion,
                  asked.machine.tile_memory.value));
}

}  // namespace

// Counts grow in steps of different size, so changes are compared per relative growth of the number
// of tiles.
const FinerCut* TermShare::driver() const {
  const auto per_growth = [](const FinerCut& cut) {
    const double growth = static_cast<double>(cut.to) / static_cast<double>(cut.from) - 1;
    return static_cast<double>(cut.change.value) / growth;
  };
  const auto [least, most] = std::ranges::minmax_element(finer_cut, {}, per_growth);
  if (finer_cut.empty()) return nullptr;
  if (least->change.value < 0) return &*least;
  return most->change.value > 0 ? &*most : nullptr;
}

namespace {

// Returns an explanation with everything that needs no other plan.
Explanation begun(const Asked& asked, const Plan& plan, const MethodChoice& methods,
                  Bytes temp_bound) {
  Explanation e;
  e.request = internal::request_text(asked.problem, asked.machine);
  e.plan = plan;
  e.methods = methods;
  e.tiles = asked.machine.tiles;
  e.temp_bound = temp_bound;
  e.terms = shares_of(plan);
  return e;
}

// Explains a plan with one layout of buckets, beside plans with buckets alone.
Explanation explain_one(const Asked& asked, const Plan& plan) {
  const internal::CaseSet set = internal::make_cases(asked.with(effective(asked, plan)));
  const Case& own = case_of(set.cases, plan);
  Explanation e = begun(asked, plan, internal::choice_of(own), Bytes(bound_of(asked, plan)));
  add_finer_cuts(own, plan, e.terms);
  const internal::Overview all = internal::overview(set.cases, e.temp_bound.value, kRunnersUp + 1);
  e.partitions = all.partitions;
  for (const Found& f : all.front)
    if (e.runners_up.size() < kRunnersUp && (f.c != &own || f.parts != plan.partition))
      e.runners_up.push_back(alternative(*f.c, f.parts, plan));
  for (std::size_t i = 0; i < set.cases.size(); ++i)
    e.methods_tried.push_back(verdict(set.cases[i], all.of_case[i], e));
  lift_tiles(asked, [&e](LiftedLimit limit, const Asked& on) { lift_by_planning(limit, on, e); });
  lift(LiftedLimit::TemporaryMemory, all.without_temp_bound, e);
  lift(LiftedLimit::TileMemory, all.without_memory, e);
  lift(LiftedLimit::Words, all.without_words, e);
  lift_options(asked, e);
  return e;
}

// Adds the best plan without buckets to the methods that were tried, if there is one.
void add_dense(const Asked& asked, Explanation& e) {
  if (!internal::may_have_no_buckets(asked.options)) return;
  PlanResult dense = internal::plan_without_buckets(asked, internal::kAnyCycles);
  if (!dense.has_plan) return;
  MethodVerdict v;
  v.methods.use_dense = v.methods.without_buckets = true;
  v.best = alternative(v.methods, std::move(dense.plan), e.plan);
  e.methods_tried.push_back(std::move(v));
}

// Returns the plan of a whole layer that has a plan for one of its layouts; no value if both
// layouts do not fit together.
using Whole = std::function<std::optional<Plan>(const Plan&)>;

const Case& case_of_layout(const std::vector<Case>& cases, const Plan& layout, const Plan& plan,
                           const Whole& whole) {
  for (const Case& c : cases)
    if (internal::partition_is_legal(c, layout.partition) &&
        whole(internal::make_plan(c, layout.partition)) == plan)
      return c;
  return case_of(cases, plan);  // which says that the plan is none of the request
}

// Returns other plans of the layer with another plan for this layout, the cheapest first. The
// search has tried all of them.
std::vector<Alternative> other_layouts(const std::vector<Found>& front, const Plan& plan,
                                       const Whole& whole) {
  std::vector<Alternative> others;
  for (const Found& f : front)
    if (const auto other = whole(internal::make_plan(*f.c, f.parts)); other && *other != plan)
      others.push_back(alternative(internal::choice_of(*f.c), *other, plan));
  std::ranges::stable_sort(others, {}, &Alternative::loses);
  if (others.size() > kRunnersUp) others.resize(kRunnersUp);
  return others;
}

// Explains one of two layouts: the other layout stays, and other plans for this one are compared by
// the cycles of the whole layer.
Explanation explain_layout(const Asked& layout, const Plan& own_plan, const Plan& plan,
                           Bytes temp_bound, const Whole& whole) {
  const internal::CaseSet set = internal::make_cases(layout);
  const Case& own = case_of_layout(set.cases, own_plan, plan, whole);
  Explanation e = begun(layout, internal::make_plan(own, own_plan.partition),
                        internal::choice_of(own), temp_bound);
  add_finer_cuts(own, e.plan, e.terms);
  const internal::Overview all =
      internal::overview(set.cases, temp_bound.value, internal::kPlansOfALayout);
  e.partitions = all.partitions;
  e.runners_up = other_layouts(all.front, plan, whole);
  for (std::size_t i = 0; i < set.cases.size(); ++i) {
    MethodVerdict v = verdict(set.cases[i], all.of_case[i], e);
    if (v.chosen)
      v.best = Alternative{v.methods, plan, {}, {}};
    else if (v.best)
      if (auto other = whole(v.best->plan)) v.best = alternative(v.methods, *other, plan);
    e.methods_tried.push_back(std::move(v));
  }
  return e;
}

// Adds the gains of limits on the whole layer, which is planned again without each of them.
void lift_whole(const Asked& asked, const Plan& plan, Explanation& e) {
  const auto add = [&](LiftedLimit limit, const Asked& changed) {
    const PlanResult best = internal::plan_with_buckets(changed);
    if (!best.has_plan) return;
    // A search that pairs layouts may miss a plan that it had on the smaller machine.
    const Cycles gain = std::max(Cycles(), plan.cost.cycles - best.plan.cost.cycles);
    e.limits.push_back({limit, gain, e.methods, best.plan.partition});
  };
  lift_tiles(asked, add);
  Options options = asked.options;
  options.available_memory_proportion = 1;
  add(LiftedLimit::TemporaryMemory, asked.with(options));
}

// Explains the plan that runs, and then the layout that was chosen with that of Fwd.
Explanation explain_two(const Asked& asked, const Plan& plan) {
  const auto [forward, transposed_layer] =
      two_problems(asked.problem, plan.runs_transposed(Pass::GradW));
  const Bytes bound(bound_of(asked, plan));
  const Plan& backward = plan.backward.front();
  const auto join = [&](const Plan& here, const Plan& there) {
    return internal::joined(here, there, asked.problem, asked.machine, bound);
  };
  Explanation e = explain_layout({forward, asked.machine, asked.options, asked.stats}, plan, plan,
                                 bound, [&](const Plan& here) { return join(here, backward); });
  const Plan forward_plan = std::exchange(e.plan, plan);
  const std::vector<TermShare> forward_terms = std::exchange(e.terms, shares_of(plan));
  for (TermShare& term : e.terms)
    for (const TermShare& same : forward_terms)
      if (same.pass == term.pass && same.name == term.name) term.finer_cut = same.finer_cut;
  e.request = internal::request_text(asked.problem, asked.machine);
  std::optional<PatternStats> stats;
  if (asked.stats != nullptr) stats = transposed(*asked.stats);
  e.backward.push_back(explain_layout(
      {transposed_layer, asked.machine, asked.options, stats ? &*stats : nullptr}, backward, plan,
      bound, [&](const Plan& there) { return join(forward_plan, there); }));
  lift_whole(asked, plan, e);
  const PlanResult one = plan_one_layout(asked);
  if (one.has_plan) e.one_layout_loses = one.plan.cost.cycles - plan.cost.cycles;
  return e;
}

// Explains a plan without buckets: its terms, and the best plan with R in large blocks.
Explanation explain_dense(const Asked& asked, const Plan& plan) {
  const MethodChoice methods{.use_dense = true, .without_buckets = true};
  Explanation e = begun(asked, plan, methods, Bytes(bound_of(asked, plan)));
  const PlanResult again = internal::plan_without_buckets(asked);
  if (!again.has_plan || again.plan != plan)
    throw_invalid(
        fmt::format("the dense plan is none of the request ({}); explain the plan that plan() "
                    "returned for the same layer, machine and options",
                    to_string(asked.problem)));
  e.methods_tried.push_back({e.methods, true, Alternative{e.methods, plan, {}, {}}, {}});
  const internal::CaseSet set = internal::make_cases(asked);
  const internal::Overview all = internal::overview(set.cases, e.temp_bound.value, kRunnersUp);
  e.partitions = again.evaluations + all.partitions;
  for (const Found& f : all.front) e.runners_up.push_back(alternative(*f.c, f.parts, plan));
  for (std::size_t i = 0; i < set.cases.size(); ++i)
    e.methods_tried.push_back(verdict(set.cases[i], all.of_case[i], e));
  return e;
}

}  // namespace

Explanation explain(const Problem& problem, const device::Machine& machine, const Options& options,
                    const PatternStats* stats, const Plan& plan) {
  const DefaultFloatMode mode;
  const Asked asked{problem, machine, options, stats};
  if (!plan.backward.empty()) return explain_two(asked, plan);
  if (plan.dense) return explain_dense(asked, plan);
  Explanation e = explain_one(asked, plan);
  add_dense(asked, e);
  return e;
}

}  // namespace tessera::planner
