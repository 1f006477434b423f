#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/executor.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/train/optim/optimiser.hpp"
#include "tessera/train/optim/values.hpp"

namespace tessera::train {

// The state of an optimiser for encoded weights, in bucket order: states_of() arrays of
// [buckets][values_per_bucket].
template <class C>
using EncodedState = ValueState<C>;

// Zeros. partitioner::from_bucket_order makes them states of the matrix, to_bucket_order the other
// way, as it must when a pattern has changed.
template <class C>
EncodedState<C> make_encoded_state(const Optimiser& optimiser, const partitioner::Buckets& buckets);

// One step straight on values in bucket order, nothing is decoded: GradW has the layout of the
// values. Every stored value changes, padding does not; the bits are those of step() of a csr
// weight and of any number of threads. W is float, double or Half; Half is widened, changed in
// float and rounded back. The state is EncodedState<float> for Half and float. Lists of another
// length than buckets * values_per_bucket and a state of another optimiser are
// Error{InvalidArgument}, and nothing has changed. O(values).
template <class W, class C>
void step(const Optimiser& optimiser, const partitioner::Buckets& buckets, std::span<W> values,
          std::span<const W> gradients, EncodedState<C>& state, Executor& executor);

}  // namespace tessera::train
