#include "tessera/planner/plan_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/float_mode.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/planner/internal/candidate_chain.hpp"
#include "tessera/planner/internal/dense_layer.hpp"
#include "tessera/planner/internal/planner_search.hpp"
#include "tessera/planner/internal/two_layouts.hpp"
#include "tessera/planner/planner.hpp"

namespace tessera::planner {
namespace {

Options in_network(Options options) {
  if (options.constraints.use_dense.value_or(false))
    throw_invalid(
        "layers of a network are sparse unless they are described as dense (NetworkLayer::dense, "
        "\"dense\": true in a file); leave planConstraints.useDense out");
  options.operand_placement = Placement::AtHome;
  options.constraints.use_dense = false;
  return options;
}

// Adds up the work of each kind and layer.
void add_work(std::vector<WorkCost>& all, const std::vector<WorkCost>& work) {
  for (const WorkCost& part : work) {
    const auto same = std::ranges::find_if(all, [&](const WorkCost& other) {
      return other.work == part.work && other.layer == part.layer;
    });
    if (same == all.end())
      all.push_back(part);
    else
      same->cycles += part.cycles;
  }
}

// Returns the network of the chosen plans with its cost.
NetworkPlan priced(const NetworkSpec& spec, const internal::PricedCandidates& candidates,
                   const std::vector<std::size_t>& chosen, const device::Machine& machine) {
  NetworkPlan plan;
  Bytes resident, temp, beside;
  std::vector<PricedLayer> layers;
  for (std::size_t l = 0; l < candidates.size(); ++l)
    layers.emplace_back(spec, std::int64_t(l), candidates[l][chosen[l]].plan, machine);
  for (std::size_t l = 0; l < candidates.size(); ++l) {
    const PricedLayer& layer = layers[l];
    plan.plans.push_back(layer.plan);
    plan.candidates += std::ssize(candidates[l]);
    add_work(plan.work, layer.own_work());
    if (l + 1 < candidates.size()) add_work(plan.work, layer.link_work(layers[l + 1]));
    resident += layer.resident();
    temp = std::max(temp, layer.temp() + beside);
    beside = layer.temp_of_next();
  }
  plan.cycles = sum_of(plan.work);
  plan.memory = resident + temp;
  return plan;
}

// Returns the cycles of the cheapest plan of each layer in a program of its own.
Cycles cycles_apart(const internal::PricedCandidates& candidates) {
  Cycles cycles;
  for (std::size_t l = 0; l < candidates.size(); ++l) {
    const PricedLayer& layer = candidates[l].front();
    cycles += sum_of(layer.apart_work());
    if (l + 1 < candidates.size())
      cycles += sum_of(layer.apart_link_work(candidates[l + 1].front()));
  }
  return cycles;
}

// Returns the first layer whose plans are those of layer `l`.
std::size_t first_equal(const NetworkSpec& spec, const std::vector<Problem>& problems,
                        std::size_t l) {
  std::size_t first = 0;
  while (problems[first] != problems[l] || spec.layers[first].dense != spec.layers[l].dense)
    ++first;
  return first;
}

// The plan of a dense layer, whose passes each have the cheapest partition. Constraints of the
// partition are those of sparse layers.
Plan dense_layer_plan(const Problem& problem, const device::Machine& machine, Options options) {
  options.constraints = {.use_dense = true};
  options.operand_placement = Placement::EvenSpread;
  if (!internal::wants_no_buckets(options))
    throw_invalid(
        "dense layers of a network have no buckets; leave poplibsParity and "
        "partitioner.forceBucketSpills out");
  PlanResult result = internal::plan_without_buckets({problem, machine, options});
  if (!result.has_plan) throw Error(ErrorCode::NoSolution, result.reason);
  Plan plan = std::move(result.plan);
  for (const DensePassPlan& pass : plan.dense->passes)
    if (pass.rounds.product() != 1)
      throw Error(ErrorCode::NoSolution,
                  fmt::format("{} of this dense layer fits a tile only in {} rounds, and a network "
                              "runs it in one; use more tiles or a smaller batch, or raise "
                              "availableMemoryProportion",
                              to_string(pass.product.pass), pass.rounds.product()));
  return plan;
}

[[noreturn]] void throw_too_large(const internal::PricedCandidates& candidates,
                                  const device::Machine& machine) {
  std::size_t largest = 0;
  Bytes most, sum;
  for (std::size_t l = 0; l < candidates.size(); ++l) {
    Bytes least = candidates[l].front().resident();
    for (const PricedLayer& layer : candidates[l]) least = std::min(least, layer.resident());
    if (least > most) largest = l;
    most = std::max(most, least);
    sum += least;
  }
  throw Error(
      ErrorCode::NoSolution,
      fmt::format("no plans for this network: its layers need {} bytes a tile that stay, "
                  "and temporary memory beside them, but {} has {}; layer {} needs most, "
                  "{} bytes; recompute activations, or use more tiles, a smaller batch or "
                  "narrower types",
                  sum.value, machine.name, machine.tile_memory.value, largest + 1, most.value));
}

void add_candidate(LayerCandidates& candidates, Plan plan) {
  if (std::find(candidates.begin(), candidates.end(), plan) == candidates.end())
    candidates.push_back(std::move(plan));
}

void add_candidate(LayerCandidates& candidates, const Problem& problem,
                   const device::Machine& machine, const Options& options) {
  PlanResult result = plan(problem, machine, options);
  if (result.has_plan) add_candidate(candidates, std::move(result.plan));
}

// Returns plans with one layout: the cheapest ones with a given number of parts along x or along
// the batch, the cheapest first.
LayerCandidates with_parts_given(const Problem& problem, const device::Machine& machine,
                                 const Options& options, Dims grain) {
  LayerCandidates candidates;
  const Dims grains = ceil_div(problem.size_in_blocks(), grain);
  constexpr std::array<std::int64_t, 12> kParts = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
  for (const std::int64_t parts : kParts) {
    if (parts > machine.tiles) break;
    Options pinned = options;
    if (!options.constraints.z && is_share_count(grains.z, parts)) {
      pinned.constraints.z = parts;
      add_candidate(candidates, problem, machine, pinned);
    }
    pinned = options;
    if (!options.constraints.x && is_share_count(grains.x, parts)) {
      pinned.constraints.x = parts;
      add_candidate(candidates, problem, machine, pinned);
    }
  }
  std::ranges::stable_sort(candidates, {}, [](const Plan& p) { return p.cost.cycles; });
  return candidates;
}

std::optional<Cycles> cycles_standing_alone(const NetworkSpec& spec,
                                            const std::vector<Problem>& problems,
                                            const device::Machine& machine, Options options) {
  options = in_network(options);
  options.operand_placement = Placement::EvenSpread;
  std::vector<Plan> plans;
  Cycles sum;
  for (std::size_t l = 0; l < problems.size(); ++l) {
    const std::size_t same = first_equal(spec, problems, l);
    if (same < l) {
      plans.push_back(plans[same]);
    } else if (spec.layers[l].dense) {
      plans.push_back(dense_layer_plan(problems[l], machine, options));
    } else {
      PlanResult result = plan(problems[l], machine, options);
      if (!result.has_plan) return {};
      plans.push_back(std::move(result.plan));
    }
    const PricedLayer layer(spec, std::int64_t(l), plans.back(), machine);
    sum += plans.back().cost.cycles + sum_of(layer.spread_work());
  }
  return sum;
}

}  // namespace

double NetworkPlan::gain() const {
  if (!layer_by_layer_fits || layer_by_layer == Cycles()) return 0;
  return 1 - double(cycles.value) / double(layer_by_layer.value);
}

LayerCandidates layer_candidates(const Problem& problem, const device::Machine& machine,
                                 const Options& given, std::size_t most) {
  const DefaultFloatMode mode;
  const Options options = in_network(given);
  LayerCandidates candidates{plan_or_throw(problem, machine, options)};
  // Half of the others may have two layouts: they cost about as much and differ in their homes.
  const auto pairs = internal::cheapest_pairs({problem, machine, options, nullptr});
  for (const Plan& pair : pairs)
    if (candidates.size() < (most + 1) / 2) add_candidate(candidates, pair);
  for (Plan& one : with_parts_given(problem, machine, options, candidates.front().grain))
    if (candidates.size() < most) add_candidate(candidates, std::move(one));
  return candidates;
}

NetworkPlan choose_plans(const NetworkSpec& spec, const std::vector<LayerCandidates>& candidates,
                         const device::Machine& machine) {
  const DefaultFloatMode mode;
  check(spec);
  TESSERA_ASSERT(candidates.size() == spec.layers.size());
  const internal::PricedCandidates all(spec, candidates, machine);
  const std::vector<std::size_t> chosen = internal::cheapest_chain(all, machine);
  if (chosen.empty()) throw_too_large(all, machine);
  NetworkPlan plan = priced(spec, all, chosen, machine);
  const NetworkPlan cheapest = priced(spec, all, std::vector<std::size_t>(chosen.size()), machine);
  plan.cheapest_of_each = cheapest.cycles;
  plan.layer_by_layer = cycles_apart(all);
  plan.layer_by_layer_fits = cheapest.memory <= machine.tile_memory;
  return plan;
}

NetworkPlan plan_network(const NetworkSpec& spec, const device::Machine& machine,
                         const Options& options) {
  const DefaultFloatMode mode;
  check(spec);
  const std::vector<Problem> problems = problems_of(spec);
  std::vector<LayerCandidates> candidates;
  for (std::size_t l = 0; l < problems.size(); ++l) {
    const std::size_t at = first_equal(spec, problems, l);
    try {
      if (at < l)
        candidates.push_back(candidates[at]);
      else if (spec.layers[l].dense)
        candidates.push_back({dense_layer_plan(problems[l], machine, in_network(options))});
      else
        candidates.push_back(layer_candidates(problems[l], machine, options, kCandidatesPerLayer));
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("layer {}: {}", l + 1, error.what()));
    }
  }
  NetworkPlan plan = choose_plans(spec, candidates, machine);
  plan.standing_alone = cycles_standing_alone(spec, problems, machine, options);
  return plan;
}

std::string to_string(const NetworkPlan& plan) {
  std::string text = fmt::format("joint plan: {} cycles", plan.cycles.value);
  text += plan.layer_by_layer_fits
              ? fmt::format(
                    ", {:.1f} % fewer than the cheapest plan of each layer in a program of "
                    "its own, {}; in one program these plans take {}",
                    100 * plan.gain(), plan.layer_by_layer.value, plan.cheapest_of_each.value)
              : std::string(
                    "; the cheapest plan of each layer would not fit the memory of a tile "
                    "together");
  text += fmt::format(" ({} plans compared)", plan.candidates);
  if (plan.standing_alone)
    text += fmt::format(
        "\nlayers that stand alone, with operands spread evenly over all tiles: {} cycles, of "
        "which "
        "the joint plan takes {:.3f}",
        plan.standing_alone->value, double(plan.cycles.value) / double(plan.standing_alone->value));
  return text;
}

}  // namespace tessera::planner
