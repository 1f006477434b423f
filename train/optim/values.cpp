#include "tessera/train/optim/values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/half.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera::train {
namespace {

void require_same_length(std::string_view what, std::size_t given, std::size_t needed) {
  if (given == needed) return;
  throw_invalid(
      fmt::format("step of an optimiser on values: {} {}; there must be {}", given, what, needed));
}

// The factors of Adam's moments after one step by which its corrections of step number `steps` give
// what those of the first step give; other rules correct nothing.
struct MomentFactors {
  std::int64_t steps;

  template <class AnyAdam>
  std::vector<double> of_adam(const AnyAdam& rule) const {
    const auto factor = [&](double beta) {
      return (1 - std::pow(beta, double(steps))) / (1 - beta);
    };
    return {factor(rule.beta1), factor(rule.beta2)};
  }
  std::vector<double> operator()(const Adam& rule) const { return of_adam(rule); }
  std::vector<double> operator()(const AdamW& rule) const { return of_adam(rule); }
  template <class Rule>
  std::vector<double> operator()(const Rule&) const {
    return {};
  }
};

}  // namespace

template <class C>
ValueState<C> make_value_state(const Optimiser& optimiser, std::int64_t count) {
  check(optimiser);
  ValueState<C> state;
  state.arrays.assign(std::size_t(states_of(optimiser)), std::vector<C>(std::size_t(count)));
  return state;
}

template <class T, class V>
ValueStep<T, V>::ValueStep(const Optimiser& optimiser, std::span<const T> gradients,
                           ValueState<T>& state)
    : optimiser_(optimiser), gradients_(gradients), state_(&state) {
  check(optimiser);
  require_same_length("arrays of state", state.arrays.size(), std::size_t(states_of(optimiser)));
  for (const std::vector<T>& array : state.arrays)
    require_same_length("numbers in a state", array.size(), gradients.size());
  ++state.steps;
}

template <class T, class V>
void ValueStep<T, V>::operator()(std::span<T> part, std::int64_t first) const {
  std::array<T*, codelets::kMostStates> states{};
  const auto update = [&](std::span<const V> gradients, std::int64_t begin, V* values) {
    for (std::size_t i = 0; i < state_->arrays.size(); ++i)
      states[i] = state_->arrays[i].data() + begin;
    codelets::update_values<V, T>(optimiser_, state_->steps, gradients,
                                  std::span(states).first(state_->arrays.size()), values);
  };
  if constexpr (std::is_same_v<T, V>) {
    update(gradients_.subspan(std::size_t(first), part.size()), first, part.data());
  } else {
    constexpr std::size_t kChunk = 512;  // of values whose copies stay in the nearest cache
    std::array<V, kChunk> gradients, values;
    const auto round = [](T number) { return V(number); };
    for (std::size_t at = 0; at < part.size(); at += kChunk) {
      const std::span<T> chunk = part.subspan(at, std::min(kChunk, part.size() - at));
      const std::int64_t begin = first + std::int64_t(at);
      std::ranges::transform(gradients_.subspan(std::size_t(begin), chunk.size()),
                             gradients.begin(), round);
      std::ranges::transform(chunk, values.begin(), round);
      update(std::span<const V>(gradients).first(chunk.size()), begin, values.data());
      for (std::size_t i = 0; i < chunk.size(); ++i) chunk[i] = T(values[i]);
    }
  }
}

template <class T>
void step(const Optimiser& optimiser, std::span<T> values, std::span<const T> gradients,
          ValueState<T>& state, Executor& executor) {
  require_same_length("gradients", gradients.size(), values.size());
  const ValueStep<T> change(optimiser, gradients, state);
  // Pieces of whole cache lines that do not depend on the threads.
  constexpr std::int64_t kPiece = 1 << 14;
  const auto count = std::ssize(values);
  executor.for_each(ceil_div(count, kPiece), [&](std::int64_t piece) {
    const std::int64_t begin = piece * kPiece;
    change(values.subspan(std::size_t(begin), std::size_t(std::min(kPiece, count - begin))), begin);
  });
}

template <class T>
ValueState<T> first_step(const Optimiser& optimiser, std::int64_t steps,
                         std::span<const T> gradients, std::span<T> values) {
  require_same_length("values", values.size(), gradients.size());
  if (steps < 1)
    throw_invalid(
        fmt::format("first step of an optimiser: the list counts {} steps; it must be at "
                    "least 1, the step of now",
                    steps));
  ValueState<T> state = make_value_state<T>(optimiser, std::ssize(gradients));
  std::fill(values.begin(), values.end(), T(0));
  ValueStep<T>(optimiser, gradients, state)(values, 0);
  state.steps = steps;
  const std::vector<double> factors = std::visit(MomentFactors{steps}, optimiser.rule);
  for (std::size_t i = 0; i < factors.size(); ++i)
    for (T& number : state.arrays[i]) number = T(double(number) * factors[i]);
  return state;
}

template ValueState<float> first_step(const Optimiser&, std::int64_t, std::span<const float>,
                                      std::span<float>);
template ValueState<double> first_step(const Optimiser&, std::int64_t, std::span<const double>,
                                       std::span<double>);
template ValueState<float> make_value_state(const Optimiser&, std::int64_t);
template ValueState<double> make_value_state(const Optimiser&, std::int64_t);
template class ValueStep<float>;
template class ValueStep<float, Half>;
template class ValueStep<float, BFloat16>;
template class ValueStep<double>;
template void step(const Optimiser&, std::span<float>, std::span<const float>, ValueState<float>&,
                   Executor&);
template void step(const Optimiser&, std::span<double>, std::span<const double>,
                   ValueState<double>&, Executor&);

}  // namespace tessera::train
