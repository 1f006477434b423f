#pragma once

#include <cstdint>
#include <type_traits>

#include "tessera/train/optim/optimiser.hpp"

namespace tessera::train {

// The type of arithmetic and of states for weights of type W.
template <class W>
using SlotType = std::conditional_t<std::is_same_v<W, double>, double, float>;

// A run of weights with their gradients and states: the values of a row, of a bucket or of a whole
// list.
template <class W>
struct Slots {
  W* weight;
  const W* gradient;   // null: zeros
  SlotType<W>* first;  // the first of states_of() arrays, null if there is none
  SlotType<W>* second;
  std::int64_t count;
};

// Changes every weight of a run by step number `step` of an optimiser, counted from 1. This is the
// only code that changes weights: steps on lists and on arrays pass their runs to it, so they give
// the same bits. Nothing is checked. O(count), allocates nothing. W is float, double or Half.
template <class W>
void change_slots(const Optimiser& optimiser, std::int64_t step, const Slots<W>& slots);

}  // namespace tessera::train
