#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/train/optim/optimiser.hpp"

namespace tessera::train {

// The state of an optimiser for a list of weights: states_of() arrays of the length of the list. C
// is double for double weights, else float.
template <class C>
struct ValueState {
  std::int64_t steps = 0;
  std::vector<std::vector<C>> arrays;
  friend bool operator==(const ValueState&, const ValueState&) = default;
};

// Returns a state of zeros for `count` weights.
template <class C>
ValueState<C> make_value_state(const Optimiser& optimiser, std::int64_t count);

// Makes one step on a list of weights, such as the values of a layer in the order of its weights.
// The caller has checked that the gradients belong to the same pattern; only lengths are compared
// here, so a step costs what its arithmetic costs. The bits are those of step() of a csr weight and
// of any number of threads. Lists of different lengths and a state of another optimiser are
// Error{InvalidArgument}, and nothing has changed. O(weights), allocates nothing. T is float or
// double.
template <class T>
void step(const Optimiser& optimiser, std::span<T> values, std::span<const T> gradients,
          ValueState<T>& state, Executor& executor);

}  // namespace tessera::train
