#include "tessera/train/optim/encoded.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "tessera/base/error.hpp"
#include "tessera/train/optim/slots.hpp"

namespace tessera::train {
namespace {

using partitioner::Buckets;

std::int64_t slots_in(const Buckets& buckets) {
  return buckets.grid.buckets() * buckets.values_per_bucket();
}

void require_length(std::string_view what, std::size_t given, std::int64_t needed) {
  if (std::int64_t(given) == needed) return;
  throw Error(
      ErrorCode::InvalidArgument,
      fmt::format("step of an optimiser on buckets: {} {}; they hold {}", given, what, needed));
}

// Padding stands behind the blocks that a bucket holds.
std::int64_t values_held(const Buckets& buckets, std::int64_t bucket) {
  const auto first = buckets.source.begin() + bucket * buckets.grid.blocks;
  const auto end = std::partition_point(first, first + buckets.grid.blocks,
                                        [](std::int32_t source) { return source >= 0; });
  return (end - first) * buckets.grid.block.area();
}

}  // namespace

template <class C>
EncodedState<C> make_encoded_state(const Optimiser& optimiser, const Buckets& buckets) {
  return make_value_state<C>(optimiser, slots_in(buckets));
}

template <class W, class C>
void step(const Optimiser& optimiser, const Buckets& buckets, std::span<W> values,
          std::span<const W> gradients, EncodedState<C>& state, Executor& executor) {
  check(optimiser);
  const std::int64_t slots = slots_in(buckets);
  require_length("values", values.size(), slots);
  require_length("gradients", gradients.size(), slots);
  require_length("arrays of state", state.arrays.size(), states_of(optimiser));
  for (const std::vector<C>& array : state.arrays)
    require_length("numbers in a state", array.size(), slots);
  ++state.steps;
  executor.for_each(buckets.grid.buckets(), [&](std::int64_t bucket) {
    const std::int64_t begin = bucket * buckets.values_per_bucket();
    const auto array = [&](std::size_t i) {
      return i < state.arrays.size() ? state.arrays[i].data() + begin : nullptr;
    };
    change_slots(optimiser, state.steps,
                 Slots<W>{values.data() + begin, gradients.data() + begin, array(0), array(1),
                          values_held(buckets, bucket)});
  });
}

template EncodedState<float> make_encoded_state(const Optimiser&, const Buckets&);
template EncodedState<double> make_encoded_state(const Optimiser&, const Buckets&);
template void step(const Optimiser&, const Buckets&, std::span<float>, std::span<const float>,
                   EncodedState<float>&, Executor&);
template void step(const Optimiser&, const Buckets&, std::span<Half>, std::span<const Half>,
                   EncodedState<float>&, Executor&);
template void step(const Optimiser&, const Buckets&, std::span<double>, std::span<const double>,
                   EncodedState<double>&, Executor&);

}  // namespace tessera::train
