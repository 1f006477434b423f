#pragma once

#include <cstdint>
#include <vector>

#include "tessera/arrays/row_sparse/arrays.hpp"
#include "tessera/train/optim/optimiser.hpp"

namespace tessera::arrays {

// The state of an optimiser for one weight array: states_of() arrays of its shape.
template <class T>
struct State {
  std::int64_t steps = 0;
  std::vector<Array<T>> arrays;
  friend bool operator==(const State&, const State&) = default;
};

// Returns a state of zeros in the storage of the weight: with every row stored, or with the pattern
// of the weight. O(weight).
template <class T>
State<T> make_state(const train::Optimiser& optimiser, const Array<T>& weight);

// Makes one step. T is float or double; all arithmetic is in T.
//   weight       gradient     states       rows that change
//   dense        dense        dense        all
//   dense        row_sparse   dense        lazy: those of the gradient; else all
//   row_sparse   row_sparse   row_sparse   lazy: those of the gradient; else all
//   row_sparse   row_sparse   dense        all, lazy or not
//   csr          csr          csr          every stored element; all three have one pattern
//   csr          row_sparse   csr          stored elements; lazy: in rows of the gradient; else all
// A row-sparse weight or state must store every row. Other combinations, shapes or patterns that
// differ, and illegal arrays are Error{InvalidArgument} or Error{BadInput}, and nothing has changed
// then. With a row_sparse gradient, SGD without momentum that is not lazy first multiplies all
// weights by 1 - learning_rate * weight_decay and then applies the gradient. The cost beside the
// checks is O(values of the gradient) for a lazy step with a row_sparse gradient, else O(weight).
template <class T>
void step(const train::Optimiser& optimiser, Array<T>& weight, const Array<T>& gradient,
          State<T>& state);

}  // namespace tessera::arrays
