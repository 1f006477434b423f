#pragma once

#include "tessera/arrays/optim/step.hpp"
#include "tessera/arrays/row_sparse/arrays.hpp"
#include "tessera/train/optim/optimiser.hpp"

namespace tessera::arrays {

// Makes one step on weights of a short type with masters in float. The master takes the step of
// step.hpp, whose table of storages, errors and laziness hold here too; then every weight that may
// have changed becomes its master, rounded once. Updates smaller than half a unit of the short type
// are thus not lost: they add up in the master. W is Half or BFloat16. `weight` and `master` have
// one shape, storage and pattern, else Error{InvalidArgument} is thrown and nothing has changed.
// The cost beside the checks is O(values of the gradient) for a lazy step with a row_sparse
// gradient, else O(weight).
template <class W>
void step_with_masters(const train::Optimiser& optimiser, Array<W>& weight, Array<float>& master,
                       const Array<W>& gradient, State<float>& state);

// Returns masters of weights: the same array in float, which is exact.
template <class W>
Array<float> make_masters(const Array<W>& weight);

}  // namespace tessera::arrays
