#include "tessera/planner/internal/candidate_chain.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "tessera/base/units.hpp"

namespace tessera::planner::internal {
namespace {

// A choice of plans for the layers up to one, which no other choice beats.
struct Choice {
  Cycles cycles;
  Bytes resident, temp;
  std::size_t candidate = 0;  // of the layer
  std::size_t before = 0;     // index of the choice for the layers before it

  bool beats(const Choice& other) const {
    return cycles <= other.cycles && resident <= other.resident && temp <= other.temp;
  }
};

// Adds a choice unless one of those from `first` on beats it, and removes those that it beats.
void add_choice(std::vector<Choice>& choices, std::size_t first, const Choice& choice) {
  const auto begin = choices.begin() + std::ptrdiff_t(first);
  if (std::any_of(begin, choices.end(), [&](const Choice& c) { return c.beats(choice); })) return;
  choices.erase(
      std::remove_if(begin, choices.end(), [&](const Choice& c) { return choice.beats(c); }),
      choices.end());
  choices.push_back(choice);
}

// Returns the first layer that costs what layer `l` costs. The first and the last layer have work
// of their own, and a result that is computed again is fetched a second time.
std::size_t first_like(const NetworkSpec& spec, const std::vector<LayerCandidates>& candidates,
                       std::size_t l) {
  if (l == 0 || l + 1 == candidates.size()) return l;
  for (std::size_t k = 1; k < l; ++k)
    if (spec.layers[k] == spec.layers[l] &&
        spec.layers[k - 1].recompute == spec.layers[l - 1].recompute &&
        candidates[k] == candidates[l])
      return k;
  return l;
}

// The costs of a layer's candidate without the layers before it, and of the links to it from all
// candidates of the layer before.
class Costs {
 public:
  explicit Costs(const PricedCandidates& candidates) : candidates_(candidates) {}

  std::size_t layers() const { return candidates_.size(); }
  std::size_t candidates(std::size_t l) const { return candidates_[l].size(); }

  Choice own(std::size_t l, std::size_t c) {
    const auto [at, is_new] = own_.try_emplace({candidates_.same(l), c});
    if (is_new) {
      const PricedLayer& layer = candidates_[l][c];
      at->second = {sum_of(layer.own_work()), layer.resident(), layer.temp(), c, 0};
    }
    return at->second;
  }

  const std::vector<Cycles>& links_to(std::size_t l, std::size_t c) {
    const auto [at, is_new] = links_.try_emplace({candidates_.same(l - 1), candidates_.same(l), c});
    if (is_new)
      for (const PricedLayer& layer : candidates_[l - 1])
        at->second.push_back(sum_of(layer.link_work(candidates_[l][c])));
    return at->second;
  }

  // Returns the choice of one candidate for each layer.
  Choice of(const std::vector<std::size_t>& chosen) {
    Choice all = own(0, chosen[0]);
    for (std::size_t l = 1; l < layers(); ++l) all = after(all, 0, l, own(l, chosen[l]));
    return all;
  }

  // Returns the choice that adds candidate `own` of layer `l` to a choice for the layers before it.
  Choice after(const Choice& before, std::size_t index, std::size_t l, const Choice& own) {
    const Bytes beside = candidates_[l - 1][before.candidate].temp_of_next();
    return {before.cycles + links_to(l, own.candidate)[before.candidate] + own.cycles,
            before.resident + own.resident, std::max(before.temp, own.temp + beside), own.candidate,
            index};
  }

 private:
  const PricedCandidates& candidates_;
  std::map<std::pair<std::size_t, std::size_t>, Choice> own_;  // by layer and candidate
  std::map<std::tuple<std::size_t, std::size_t, std::size_t>, std::vector<Cycles>> links_;
};

// Rest holds what the layers behind a candidate cost at least if a byte that stays costs `price`
// cycles.
class Rest {
 public:
  Rest(Costs& costs, double price) : price_(price), least_(costs.layers()), next_(costs.layers()) {
    for (std::size_t l = costs.layers(); l-- > 0;) {
      const bool last = l + 1 == costs.layers();
      least_[l].assign(costs.candidates(l), last ? 0 : std::numeric_limits<double>::infinity());
      next_[l].assign(costs.candidates(l), 0);
      for (std::size_t n = 0; !last && n < costs.candidates(l + 1); ++n) add_next(costs, l, n);
    }
  }

  // The cycles of a choice for the layers up to `l`, with what the others take at least if all
  // layers together may hold so many bytes that stay.
  double least_cycles(const Choice& choice, std::size_t l, Bytes resident) const {
    return priced(choice) + least_[l][choice.candidate] -
           price_ * static_cast<double>(resident.value);
  }

  // The candidates of all layers that cost least. They may not fit.
  std::vector<std::size_t> cheapest(Costs& costs) const {
    std::vector<std::size_t> chosen(1);
    const auto whole = [&](std::size_t c) { return priced(costs.own(0, c)) + least_[0][c]; };
    for (std::size_t c = 1; c < costs.candidates(0); ++c)
      if (whole(c) < whole(chosen[0])) chosen[0] = c;
    while (chosen.size() < costs.layers())
      chosen.push_back(next_[chosen.size() - 1][chosen.back()]);
    return chosen;
  }

 private:
  double priced(const Choice& choice) const {
    return static_cast<double>(choice.cycles.value) +
           price_ * static_cast<double>(choice.resident.value);
  }

  // Candidate `n` of the next layer behind all candidates of layer `l`.
  void add_next(Costs& costs, std::size_t l, std::size_t n) {
    const double behind = priced(costs.own(l + 1, n)) + least_[l + 1][n];
    const std::vector<Cycles>& links = costs.links_to(l + 1, n);
    for (std::size_t c = 0; c < links.size(); ++c) {
      const double cost = static_cast<double>(links[c].value) + behind;
      if (cost >= least_[l][c]) continue;
      least_[l][c] = cost;
      next_[l][c] = n;
    }
  }

  double price_;
  std::vector<std::vector<double>> least_;      // [layer][candidate]
  std::vector<std::vector<std::size_t>> next_;  // likewise: the candidate of the next layer
};

// Tells which choices can lead to the cheapest one that fits. Without it, the number of choices
// that no other beats grows with every layer.
class Limits {
 public:
  Limits(Costs& costs, Bytes memory) : memory_(memory) {
    set_least_memory(costs);
    rests_.emplace_back(costs, 0);
    std::vector<std::size_t> cheapest = rests_[0].cheapest(costs);
    if (!note_if_fits(costs, cheapest)) find_price(costs, std::move(cheapest));
  }

  // The cheapest choice that is known to fit, as indices of candidates, and its cycles; empty if
  // none is known.
  const std::vector<std::size_t>& known() const { return known_; }
  double known_cycles() const { return most_cycles_; }

  // Leaves at most kMostChoices of the choices for the layers up to `l`, those with the lowest
  // bounds, in their order. Nothing is left out unless a choice for all layers is known.
  void keep_most_promising(std::vector<Choice>& choices, std::size_t l) const {
    if (known_.empty() || choices.size() <= kMostChoices) return;
    std::vector<double> bounds;
    for (const Choice& choice : choices)
      bounds.push_back(
          rests_.back().least_cycles(choice, l, memory_ - std::max(choice.temp, least_temp_[l])));
    std::vector<double> sorted = bounds;
    const auto last = sorted.begin() + std::ptrdiff_t(kMostChoices);
    std::nth_element(sorted.begin(), last, sorted.end());
    std::size_t at = 0;
    std::erase_if(choices, [&](const Choice&) { return bounds[at++] >= *last; });
  }

  bool may_be_part(const Choice& choice, std::size_t l) const {
    const Bytes for_resident = memory_ - std::max(choice.temp, least_temp_[l]);
    if (choice.resident + least_resident_[l] > for_resident) return false;
    // Half a cycle is more than all rounding.
    return std::ranges::all_of(rests_, [&](const Rest& rest) {
      return rest.least_cycles(choice, l, for_resident) <= most_cycles_ + 0.5;
    });
  }

 private:
  // Sets the bytes that the layers behind each one need at least.
  void set_least_memory(Costs& costs) {
    least_resident_.resize(costs.layers());
    least_temp_.resize(costs.layers());
    for (std::size_t l = costs.layers() - 1; l > 0; --l) {
      Bytes resident = costs.own(l, 0).resident, temp = costs.own(l, 0).temp;
      for (std::size_t c = 1; c < costs.candidates(l); ++c) {
        resident = std::min(resident, costs.own(l, c).resident);
        temp = std::min(temp, costs.own(l, c).temp);
      }
      least_resident_[l - 1] = least_resident_[l] + resident;
      least_temp_[l - 1] = std::max(least_temp_[l], temp);
    }
  }

  bool note_if_fits(Costs& costs, const std::vector<std::size_t>& chosen) {
    const Choice all = costs.of(chosen);
    if (all.resident + all.temp > memory_) return false;
    if (const auto cycles = static_cast<double>(all.cycles.value); cycles < most_cycles_) {
      most_cycles_ = cycles;
      known_ = chosen;
    }
    return true;
  }

  // Looks for the price of a byte between one with which the layers are too large and one with
  // which they fit: its bound is the sharpest.
  void find_price(Costs& costs, std::vector<std::size_t> too_large) {
    constexpr double kLeast = 1e-6, kMost = 1e12;
    constexpr int kHalvings = 16;
    double low = 0, high = kLeast;
    std::vector<std::size_t> small = Rest(costs, high).cheapest(costs);
    while (!note_if_fits(costs, small)) {
      if (high > kMost) return;
      low = std::exchange(high, 4 * high);
      too_large = std::exchange(small, Rest(costs, high).cheapest(costs));
    }
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (low + high) / 2;
      std::vector<std::size_t> chosen = Rest(costs, middle).cheapest(costs);
      const bool fits = note_if_fits(costs, chosen);
      (fits ? high : low) = middle;
      (fits ? small : too_large) = std::move(chosen);
    }
    rests_.emplace_back(costs, high);
    note_mixtures(costs, too_large, small);
  }

  // Equal layers all change at the same price, so something between the two is cheaper: the first
  // layers as in one of them, and the others as in the other one.
  void note_mixtures(Costs& costs, const std::vector<std::size_t>& a,
                     const std::vector<std::size_t>& b) {
    for (const auto& [first, second] : {std::pair(&a, &b), std::pair(&b, &a)}) {
      std::vector<std::size_t> chosen = *second;
      for (std::size_t l = 0; l < chosen.size(); ++l) {
        chosen[l] = (*first)[l];
        note_if_fits(costs, chosen);
      }
    }
  }

  // With so many choices for each layer, hundreds of layers take seconds, and what is left out
  // costs little: the bounds of the others are as low.
  static constexpr std::size_t kMostChoices = 1024;

  Bytes memory_;
  std::vector<std::size_t> known_;
  std::vector<Bytes> least_resident_, least_temp_;  // [layer]
  std::vector<Rest> rests_;
  double most_cycles_ = std::numeric_limits<double>::infinity();  // of a choice that fits
};

// The choices for each layer, by layer.
class Chain {
 public:
  Chain(const PricedCandidates& candidates, const device::Machine& machine)
      : costs_(candidates), limits_(costs_, machine.tile_memory) {}

  // Returns the cheapest choice that fits, as indices of candidates; empty if none fits.
  std::vector<std::size_t> best() {
    std::vector<std::vector<Choice>> choices;
    for (std::size_t l = 0; l < costs_.layers(); ++l) {
      choices.push_back(choices_of(l, choices.empty() ? nullptr : &choices.back()));
      if (choices.back().empty()) return limits_.known();
      limits_.keep_most_promising(choices.back(), l);
    }
    const auto fewest = [](const Choice& a, const Choice& b) { return a.cycles < b.cycles; };
    const auto& last = choices.back();
    auto at = std::size_t(std::min_element(last.begin(), last.end(), fewest) - last.begin());
    if (static_cast<double>(last[at].cycles.value) > limits_.known_cycles()) return limits_.known();
    std::vector<std::size_t> chosen(costs_.layers());
    for (std::size_t l = costs_.layers(); l-- > 0;) {
      chosen[l] = choices[l][at].candidate;
      at = choices[l][at].before;
    }
    return chosen;
  }

 private:
  std::vector<Choice> choices_of(std::size_t l, const std::vector<Choice>* before) {
    std::vector<Choice> choices;
    for (std::size_t c = 0; c < costs_.candidates(l); ++c) {
      const Choice own = costs_.own(l, c);
      const std::size_t first = choices.size();
      if (before == nullptr)
        add(choices, first, own, l);
      else
        for (std::size_t b = 0; b < before->size(); ++b)
          add(choices, first, costs_.after((*before)[b], b, l, own), l);
    }
    return choices;
  }
  void add(std::vector<Choice>& choices, std::size_t first, const Choice& choice,
           std::size_t l) const {
    if (limits_.may_be_part(choice, l)) add_choice(choices, first, choice);
  }

  Costs costs_;
  Limits limits_;
};

}  // namespace

PricedCandidates::PricedCandidates(const NetworkSpec& spec,
                                   const std::vector<LayerCandidates>& candidates,
                                   const device::Machine& machine)
    : priced_(candidates.size()) {
  for (std::size_t l = 0; l < candidates.size(); ++l) {
    same_.push_back(first_like(spec, candidates, l));
    if (same_[l] < l) continue;
    for (const Plan& plan : candidates[l])
      priced_[l].emplace_back(spec, std::int64_t(l), plan, machine);
  }
}

std::vector<std::size_t> cheapest_chain(const PricedCandidates& candidates,
                                        const device::Machine& machine) {
  return Chain(candidates, machine).best();
}

}  // namespace tessera::planner::internal
