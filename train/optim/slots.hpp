#pragma once

#include <cstdint>

#include "tessera/train/optim/optimiser.hpp"

namespace tessera::train {

// A run of weights with their gradients and states: the values of a part or of a whole list. T is
// float or double.
template <class T>
struct Slots {
  T* weight;
  const T* gradient;
  T* first;  // the first of states_of() arrays, null if there is none
  T* second;
  std::int64_t count;
};

// Changes every weight of a run by step number `step` of an optimiser, counted from 1. This is the
// only code that changes weights: steps on whole lists and on parts of them pass their runs to it,
// so they give the same bits. Nothing is checked. O(count), allocates nothing.
template <class T>
void change_slots(const Optimiser& optimiser, std::int64_t step, const Slots<T>& slots);

}  // namespace tessera::train
