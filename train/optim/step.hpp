#pragma once

#include <cstdint>
#include <vector>

#include "tessera/arrays/row_sparse/arrays.hpp"
#include "tessera/train/optim/optimiser.hpp"

namespace tessera::train {

// What an optimiser remembers of one weight array: states_of() arrays of its shape.
template <class T>
struct State {
  std::int64_t steps = 0;
  std::vector<arrays::Array<T>> arrays;
  friend bool operator==(const State&, const State&) = default;
};

// Zeros in the storage of the weight: every row stored, or its pattern. O(weight).
template <class T>
State<T> make_state(const Optimiser& optimiser, const arrays::Array<T>& weight);

// One step. T is float or double; all arithmetic is in T.
//   weight       gradient     states       which rows change
//   dense        dense        dense        all
//   dense        row_sparse   dense        lazy: those of the gradient; else all
//   row_sparse   row_sparse   row_sparse   the same
//   row_sparse   row_sparse   dense        all, lazy or not
//   csr          csr          csr          every stored element; one pattern for all
//   csr          row_sparse   csr          stored elements, in the rows of the second line
// A row-sparse weight and state must store every row. Anything else, shapes or patterns that
// differ, and illegal arrays are Error{InvalidArgument} or Error{BadInput}, and nothing has
// changed. Standard SGD without momentum shrinks all weights by 1 - learning_rate * weight_decay
// first and adds the gradient then. Lazy: O(values of the gradient) beside the checks, else
// O(weight).
template <class T>
void step(const Optimiser& optimiser, arrays::Array<T>& weight, const arrays::Array<T>& gradient,
          State<T>& state);

}  // namespace tessera::train
