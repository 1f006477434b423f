#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/train/optim/values.hpp"
#include "tessera/train/rewire/grow.hpp"

namespace tessera::train {

// A search for the k places of largest gradient that the pattern `taken` does not store.
using LargestOnMachine = std::function<std::vector<sparse::BlockAt>(
    const sparse::Csr<float>& taken, std::int64_t k, BlockScore pool)>;

// The facts about one layer that a method of rewiring gets. Everything is valid during the call
// only.
struct RewireRequest {
  const sparse::Csr<float>& weights;
  double fraction = 0;                     // share of the stored blocks to move, in [0, 1]
  std::span<const GradientBatch> batches;  // operands of the weight gradient of this step
  std::uint64_t seed = 0;                  // another one for each layer and step
  Executor& executor;
  std::string_view name = "weights";  // of the layer, for messages

  // Blocks that are stored after the rewire, as a schedule of densities asks for; -1: as many as
  // before. At least 1, at most all.
  std::int64_t blocks = -1;

  // Blocks that each row and each column of blocks keeps, its largest ones (smallest_blocks). At
  // least 0. More than `blocks` may then stay.
  std::int64_t min_per_neuron = 0;

  // True: each row of blocks has as many blocks as the others (rewire/rows.hpp) after the rewire,
  // which drops and adds row by row. For Set, RigL and Prune, without min_per_neuron.
  bool constant_fan_in = false;

  // The optimiser, with the learning rate of this step, and how many steps its state counts, this
  // one included. For TopK only.
  const Optimiser* optimiser = nullptr;
  std::int64_t optimiser_steps = 0;

  // Returns what exact_gradients({taken, batches, k, pool}, ...) does, from a machine that has the
  // operands; empty: this computer finds the places.
  LargestOnMachine largest_on_machine = {};
};

// The places at which a rewire may not add a block.
enum class Exclude {
  Kept,     // those that stay: a block that was just dropped may come back with its value
  Original  // all places of the old pattern: at most as many blocks move as places are free
};

// Returns "kept" or "original".
const char* to_string(Exclude exclude);

// The pattern never changes.
struct Static {
  friend bool operator==(const Static&, const Static&) = default;
};

// SET: drops the smallest blocks and adds random ones. Rewires after the optimiser's step.
struct Set {
  Exclude exclude = Exclude::Kept;
  friend bool operator==(const Set&, const Set&) = default;
};

// RigL: drops the smallest blocks and adds those of largest gradient. Rewires instead of the
// optimiser's step.
struct RigL {
  BlockScore pool = BlockScore::Sum;
  Exclude exclude = Exclude::Kept;
  friend bool operator==(const RigL&, const RigL&) = default;
};

// RigL with gradients at a random sample of the free places only.
struct Sampled {
  double factor = 2;  // size of the sample / stored blocks, above 0
  BlockScore pool = BlockScore::Sum;
  Exclude exclude = Exclude::Kept;
  friend bool operator==(const Sampled&, const Sampled&) = default;
};

// Magnitude pruning: drops the smallest blocks down to the number that a schedule of densities
// asks for, and adds none, but for rows that have too few for a constant fan-in. Rewires after the
// optimiser's step.
struct Prune {
  friend bool operator==(const Prune&, const Prune&) = default;
};

// The largest weights of a step that all places take part in, as training with masks keeps them
// that cuts the weights back after the steps of an optimiser. Rewires after the optimiser's step.
// Places that are not stored have the value 0 and a fresh state (first_step, optim/values.hpp), so
// with Adam they step by the learning rate. Of all weights the largest magnitudes are kept, and of
// equal ones those that were stored. New ones are ordered by their gradients, which is the order of
// their steps but for rounding; of equal gradients the lower place enters first, and of equal
// stored weights the higher place is kept. New weights keep value and state of their first step.
// For single elements.
struct TopK {
  Search search = Search::Exact;  // Exact finds the same weights as the dense computation would
  double factor = 4;  // places of the shortlist or of the sample / stored weights; above 0
  friend bool operator==(const TopK&, const TopK&) = default;
};

// A method of the caller: one function that returns the change of a layer's pattern.
struct Custom {
  std::string name = "custom";
  std::function<sparse::PatternChange(const RewireRequest&)> change;
  bool instead_of_step = false;  // True: the optimiser makes no step when the pattern changes
};

// A rule that changes patterns during training. Training a dense network is Static at density 1.
using Method = std::variant<Static, Set, RigL, Sampled, Prune, TopK, Custom>;

// Throws Error{InvalidArgument} for a factor of Sampled or TopK that is not above 0 and finite and
// for a Custom without a function.
void check(const Method& method);

// The choices that methods with names have, each by the name of its value.
struct MethodChoices {
  std::string_view pool = "sum";      // of RigL and Sampled: sum, max or mean
  std::string_view exclude = "kept";  // of Set, RigL and Sampled: kept or original
  std::string_view search = "exact";  // of TopK: exact, shortlist or sampled
  std::optional<double> factor = {};  // of Sampled and TopK; empty: that of the method
};

// Returns the method of a name: static, set, rigl, sampled, prune or top-k. Throws
// Error{InvalidArgument}, which lists the names, for any other name, and for unknown choices of
// this method.
Method parse_method(std::string_view name, const MethodChoices& choices);

// Returns "static", "set", "rigl", "sampled", "prune", "top-k", or the name of a Custom.
std::string name_of(const Method& method);

// Returns true if the optimiser makes no step when this method rewires.
bool is_instead_of_step(const Method& method);

// Returns true if a rewire changes patterns whatever its fraction is.
bool ignores_fraction(const Method& method);

// Returns true for the methods that keep a constant fan-in: Static, Set, RigL and Prune.
bool has_constant_fan_in(const Method& method);

// The change of a layer's pattern, and what its new weights begin with.
struct Rewired {
  sparse::PatternChange change;  // each list in row-major order, except for those of a Custom

  // The values of change.added and their arrays of the optimiser's state; empty: all are 0.
  std::vector<float> values;
  std::vector<std::vector<float>> states;
};

// Returns the change of one layer's pattern by this method. Set, RigL and Sampled move
// blocks_to_drop(request.fraction, stored blocks) blocks, of those that are stored before and
// after, and drop or add what request.blocks wants less or more; with Exclude::Original they add at
// most as many as places are free. Nothing is changed. Throws Error{InvalidArgument} for a fraction
// outside 0..1, for numbers of blocks that the layer cannot have, for Static and Prune if blocks
// must be added, for TopK without an optimiser or with blocks of several elements, and the errors
// of check(method), of smallest_blocks (drop.hpp), of the functions of grow.hpp and of a Custom.
// Example: layer.update_weights(rewire(RigL{}, {.weights = layer.weights(), .fraction = 0.3, ...})
//                                   .change)
Rewired rewire(const Method& method, const RewireRequest& request);

}  // namespace tessera::train
