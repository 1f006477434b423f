#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/train/rewire/grow.hpp"

namespace tessera::train {

// A search for the k places of largest gradient that the pattern `taken` does not store.
using LargestOnMachine = std::function<std::vector<sparse::BlockAt>(const sparse::Csr<float>& taken,
                                                                    std::int64_t k, Pool pool)>;

// The facts about one layer that a method of rewiring gets. Everything is valid during the call
// only.
struct RewireRequest {
  const sparse::Csr<float>& weights;
  double fraction = 0;                     // share of the stored blocks to move, in [0, 1]
  std::span<const GradientBatch> batches;  // operands of the weight gradient of this step
  std::uint64_t seed = 0;                  // another one for each layer and step
  Executor& executor;
  std::string_view name = "weights";  // of the layer, for messages

  // Returns what largest_gradients(taken, batches, k, pool, ...) does, from a machine that has the
  // operands; empty: this computer finds the places.
  LargestOnMachine largest_on_machine = {};
};

// The places at which a rewire may not add a block.
enum class Exclude {
  Kept,     // those that stay: a block that was just dropped may come back with its value
  Original  // all places of the old pattern: at most as many blocks move as places are free
};

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
  Pool pool = Pool::Sum;
  Exclude exclude = Exclude::Kept;
  friend bool operator==(const RigL&, const RigL&) = default;
};

// RigL with gradients at a random sample of the free places only.
struct Sampled {
  double factor = 2;  // size of the sample / stored blocks, above 0
  Pool pool = Pool::Sum;
  Exclude exclude = Exclude::Kept;
  friend bool operator==(const Sampled&, const Sampled&) = default;
};

// A method of the caller: one function that returns the change of a layer's pattern.
struct Custom {
  std::string name = "custom";
  std::function<sparse::PatternChange(const RewireRequest&)> change;
  bool instead_of_step = false;  // True: the optimiser makes no step when the pattern changes
};

// A rule that changes patterns during training. Training a dense network is Static at density 1.
using Method = std::variant<Static, Set, RigL, Sampled, Custom>;

// Throws Error{InvalidArgument} for a Sampled whose factor is not above 0 and finite and for a
// Custom without a function.
void check(const Method& method);

// Returns "static", "set", "rigl", "sampled", or the name of a Custom.
std::string name_of(const Method& method);

// Returns true if the optimiser makes no step when this method rewires.
bool is_instead_of_step(const Method& method);

// Returns the change of one layer's pattern by this method. It drops
// blocks_to_drop(request.fraction, stored blocks) blocks and adds as many; with Exclude::Original
// at most as many as places are free. Nothing is changed. Throws Error{InvalidArgument} for a
// fraction outside 0..1, and the errors of check(method), of smallest_blocks (drop.hpp), of the
// functions of grow.hpp and of a Custom.
// Example: layer.update_weights(rewire(RigL{}, {.weights = layer.weights(), .fraction = 0.3, ...}))
sparse::PatternChange rewire(const Method& method, const RewireRequest& request);

}  // namespace tessera::train
