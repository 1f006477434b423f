#include "tessera/train/optim/values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/train/optim/internal/slots.hpp"

namespace tessera::train {
namespace {

void require_same_length(std::string_view what, std::size_t given, std::size_t needed) {
  if (given == needed) return;
  throw Error(
      ErrorCode::InvalidArgument,
      fmt::format("step of an optimiser on values: {} {}; there must be {}", given, what, needed));
}

}  // namespace

template <class C>
ValueState<C> make_value_state(const Optimiser& optimiser, std::int64_t count) {
  check(optimiser);
  ValueState<C> state;
  state.arrays.assign(std::size_t(states_of(optimiser)), std::vector<C>(std::size_t(count)));
  return state;
}

template <class T>
void step(const Optimiser& optimiser, std::span<T> values, std::span<const T> gradients,
          ValueState<T>& state, Executor& executor) {
  check(optimiser);
  require_same_length("gradients", gradients.size(), values.size());
  require_same_length("arrays of state", state.arrays.size(), std::size_t(states_of(optimiser)));
  for (const std::vector<T>& array : state.arrays)
    require_same_length("numbers in a state", array.size(), values.size());
  ++state.steps;
  // Pieces of whole cache lines that do not depend on the threads.
  constexpr std::int64_t kPiece = 1 << 14;
  const auto count = std::ssize(values);
  executor.for_each(ceil_div(count, kPiece), [&](std::int64_t piece) {
    const std::int64_t begin = piece * kPiece;
    const auto array = [&](std::size_t i) {
      return i < state.arrays.size() ? state.arrays[i].data() + begin : nullptr;
    };
    internal::change_slots(optimiser, state.steps,
                           internal::Slots<T>{values.data() + begin, gradients.data() + begin,
                                              array(0), array(1), std::min(kPiece, count - begin)});
  });
}

template ValueState<float> make_value_state(const Optimiser&, std::int64_t);
template ValueState<double> make_value_state(const Optimiser&, std::int64_t);
template void step(const Optimiser&, std::span<float>, std::span<const float>, ValueState<float>&,
                   Executor&);
template void step(const Optimiser&, std::span<double>, std::span<const double>,
                   ValueState<double>&, Executor&);

}  // namespace tessera::train
