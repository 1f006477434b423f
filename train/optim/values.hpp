#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/codelets/optimiser.hpp"

namespace tessera::train {

// The optimisers, which the tiles of modelled machines run too.
using codelets::AdaGrad;
using codelets::Adam;
using codelets::AdamW;
using codelets::Nesterov;
using codelets::Optimiser;
using codelets::Rule;
using codelets::Sgd;
using codelets::TorchSgd;

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
// here, so a step costs what its arithmetic costs. The bits are the same for any number of
// threads. Lists of different lengths and a state of another optimiser are
// Error{InvalidArgument}, and nothing has changed. O(weights), allocates nothing. T is float or
// double.
template <class T>
void step(const Optimiser& optimiser, std::span<T> values, std::span<const T> gradients,
          ValueState<T>& state, Executor& executor);

// Makes the first step on weights that join a list whose state counts `steps` steps, the one of now
// included: from the value 0 and a fresh state, whatever their list has been through. Returns their
// state, which counts `steps`. Adam's corrections go by that count, so its moments are scaled to be
// corrected as those of a first step: the weight moves by the learning rate now, and the next step
// goes on from there. Throws as step() does, and for steps below 1. O(weights). T is float or
// double.
template <class T>
ValueState<T> first_step(const Optimiser& optimiser, std::int64_t steps,
                         std::span<const T> gradients, std::span<T> values);

// One step on a list of weights that its owner changes part by part, as change_values of a layer
// does. The bits are those of step(). T is float or double. If the values are those of a layer of
// another type V, Half or BFloat16, gradients and values are rounded to it before and after the
// step, as they are where a tile keeps them in that type.
// Example: layer.change_values(ValueStep<float>(optimiser, gradients, state));
template <class T, class V = T>
class ValueStep {
 public:
  // Counts the step in `state`. Gradients and state must outlive the object and have one number for
  // each weight. Throws Error{InvalidArgument} as step() does, and then nothing has changed.
  ValueStep(const Optimiser& optimiser, std::span<const T> gradients, ValueState<T>& state);

  // Makes the step on the weights from position `first` on. Each weight must be in one part.
  // Threads may call it at the same time with different parts. Allocates nothing.
  void operator()(std::span<T> part, std::int64_t first) const;

 private:
  Optimiser optimiser_;
  std::span<const T> gradients_;
  ValueState<T>* state_;
};

}  // namespace tessera::train
