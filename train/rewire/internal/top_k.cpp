#include "tessera/train/rewire/internal/top_k.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <variant>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/host/best_places.hpp"
#include "tessera/train/optim/values.hpp"
#include "tessera/train/rewire/drop.hpp"
#include "tessera/train/rewire/internal/scores.hpp"

namespace tessera::train::internal {
namespace {

using sparse::BlockAt;

// Places that are not stored, with the weights that they have after the step.
struct Entrants {
  std::vector<BlockAt> places;
  std::vector<float> gradients, values;
  std::vector<std::vector<float>> states;
};

void check_top_k(const RewireRequest& request) {
  if (!request.weights.block.is_element())
    throw_invalid(
        fmt::format("rewire of {}: top-k compares single weights, and blocks are {} x {}; "
                    "store elements, or choose rigl",
                    request.name, request.weights.block.rows, request.weights.block.cols));
  if (request.optimiser == nullptr)
    throw_invalid(
        fmt::format("rewire of {}: top-k needs the optimiser, by whose rule new places "
                    "make their first step",
                    request.name));
  smallest_blocks(request.weights, 0, request.name);  // refuses values that are not finite
}

// Returns a magnitude that no first step exceeds.
double most_of_first_step(const Optimiser& optimiser) {
  struct Most {
    double operator()(const Adam& rule) const { return rule.learning_rate; }
    double operator()(const AdamW& rule) const { return rule.learning_rate; }
    double operator()(const AdaGrad& rule) const { return rule.learning_rate; }
    double operator()(const Sgd&) const { return std::numeric_limits<double>::infinity(); }
    double operator()(const Nesterov&) const { return std::numeric_limits<double>::infinity(); }
    double operator()(const TorchSgd&) const { return std::numeric_limits<double>::infinity(); }
  };
  constexpr double kRounding = 1 + 1e-4;  // in float
  return std::visit(Most{}, optimiser.rule) * kRounding;
}

// Returns how many places can enter at most: they take the places of stored weights that are
// smaller than any first step can be, and those that are stored too few.
std::int64_t most_entrants(const RewireRequest& request, std::int64_t blocks) {
  const double most = most_of_first_step(*request.optimiser);
  const auto smaller = std::count_if(request.weights.values.begin(), request.weights.values.end(),
                                     [&](float value) { return std::abs(double(value)) < most; });
  return std::clamp<std::int64_t>(smaller + blocks - request.weights.blocks(), 0,
                                  std::min(free_places(request.weights), blocks));
}

std::vector<BlockAt> places_of_largest(const TopK& method, const RewireRequest& r,
                                       std::int64_t count) {
  const auto candidates =
      std::int64_t(std::min(method.factor * double(r.weights.blocks()), double(INT32_MAX)));
  switch (method.search) {
    case Search::Exact:
      if (r.largest_on_machine) return r.largest_on_machine(r.weights, count, BlockScore::Sum);
      return exact_gradients({r.weights, r.batches, count, BlockScore::Sum, r.name}, r.executor);
    case Search::Shortlist:
      return shortlisted_gradients({r.weights, r.batches, count, BlockScore::Sum, r.name},
                                   {candidates, r.seed}, r.executor);
    case Search::Sampled:
      return sampled_gradients({r.weights, r.batches, count, BlockScore::Sum, r.name},
                               {candidates, r.seed}, r.executor);
  }
  return {};
}

Entrants entrants_of(const TopK& method, const RewireRequest& r, std::int64_t blocks) {
  Entrants made;
  made.places = places_of_largest(method, r, most_entrants(r, blocks));
  made.gradients = gradients_at(r.weights.block, r.batches,
                                list_of(r.weights.block_rows(), made.places), r.executor);
  made.values.resize(made.places.size());
  made.states =
      first_step<float>(*r.optimiser, r.optimiser_steps, made.gradients, made.values).arrays;
  for (std::size_t i = 0; i < made.values.size(); ++i)
    if (!std::isfinite(made.values[i])) host::refuse_score(made.places[i], r.name);
  return made;
}

// Returns the order of entrants: those of larger gradient first, of equal ones the lower place.
std::vector<std::size_t> order_of(const Entrants& entrants) {
  std::vector<std::size_t> order(entrants.places.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const float first = std::abs(entrants.gradients[a]), second = std::abs(entrants.gradients[b]);
    return first != second ? first > second : a < b;
  });
  return order;
}

// Returns how many of the entrants, in this order, are among the `room` largest weights when they
// are merged with these magnitudes of stored weights, which come first where they are equal.
std::int64_t entering(const Entrants& entrants, const std::vector<std::size_t>& order,
                      std::vector<float> stored, std::int64_t room) {
  std::sort(stored.begin(), stored.end());
  float least = std::numeric_limits<float>::infinity();
  for (std::int64_t i = 0; i < std::ssize(order); ++i) {
    least = std::min(least, std::abs(entrants.values[order[std::size_t(i)]]));
    const auto before = stored.end() - std::lower_bound(stored.begin(), stored.end(), least);
    if (i + before >= room) return i;
  }
  return std::ssize(order);
}

// Returns the magnitudes of the stored weights that are not kept for their neurons.
std::vector<float> movable_magnitudes(const RewireRequest& r, const std::vector<char>& kept) {
  std::vector<float> magnitudes;
  for (std::size_t i = 0; i < r.weights.values.size(); ++i)
    if (kept.empty() || kept[i] == 0) magnitudes.push_back(std::abs(r.weights.values[i]));
  return magnitudes;
}

}  // namespace

Rewired largest_after_step(const TopK& method, const RewireRequest& request, std::int64_t blocks) {
  check_top_k(request);
  const Entrants entrants = entrants_of(method, request, blocks);
  const std::vector<std::size_t> order = order_of(entrants);
  const std::vector<char> kept = kept_by_neurons(request.weights, request.min_per_neuron);
  const std::vector<float> movable = movable_magnitudes(request, kept);
  const std::int64_t count = std::ssize(movable), stored = request.weights.blocks();
  const std::int64_t entered = entering(entrants, order, movable, blocks - (stored - count));
  std::vector<char> enters(order.size());
  for (std::int64_t i = 0; i < entered; ++i) enters[order[std::size_t(i)]] = 1;
  const auto surplus = std::clamp<std::int64_t>(stored + entered - blocks, 0, count);
  Rewired made;
  made.change.removed = smallest_others(request.weights, surplus, kept);
  made.states.resize(entrants.states.size());
  for (std::size_t i = 0; i < entrants.places.size(); ++i) {
    if (enters[i] == 0) continue;
    made.change.added.push_back(entrants.places[i]);
    made.values.push_back(entrants.values[i]);
    for (std::size_t k = 0; k < made.states.size(); ++k)
      made.states[k].push_back(entrants.states[k][i]);
  }
  return made;
}

}  // namespace tessera::train::internal
