#pragma once

#include <cmath>
#include <cstdint>

#include "tessera/arrays/internal/exact.hpp"
#include "tessera/arrays/ops/fold.hpp"

namespace tessera::arrays::internal {

// The folds are structs with a state per place:
//   add(state, value)    another stored element
//   merge(state, later)  the state of later elements
//   finish(state, absent, places)   the result, with the number of zeros that are not stored

template <class T>
struct SumFold {
  using State = Total<T>;
  static State start() { return State(0); }
  static void add(State& state, T value) { add_exactly(state, as_term(value)); }
  static void merge(State& state, State later) { add_exactly(state, later); }
  static SumOf<T> finish(State state, std::int64_t, std::int64_t) {
    return narrow<SumOf<T>>(state);
  }
};

template <class T>
struct MeanFold : SumFold<T> {
  static SumOf<T> finish(Total<T> state, std::int64_t, std::int64_t places) {
    return narrow<SumOf<T>>(state / static_cast<Total<T>>(places));
  }
};

template <class T>
struct Norm1Fold : SumFold<T> {
  static void add(Total<T>& state, T value) {
    const Total<T> term = as_term(value);
    add_exactly(state, term < 0 ? -term : term);
  }
};

// The least of transformed values: sign * value, or minus the magnitude.
template <class T, int kSign, bool kMagnitude>
struct ExtremeFold {
  struct State {
    Total<T> least = 0;
    bool is_set = false;
  };
  static State start() { return {}; }
  static void merge(State& state, State later) {
    if (!later.is_set) return;
    state = {state.is_set ? least_of(state.least, later.least) : later.least, true};
  }
  static void add(State& state, T value) {
    const Total<T> term = as_term(value);
    merge(state, {kMagnitude ? -(term < 0 ? -term : term) : Total<T>(kSign) * term, true});
  }
  static SumOf<T> finish(State state, std::int64_t absent, std::int64_t) {
    if (absent > 0) merge(state, {Total<T>(0), true});
    return narrow<SumOf<T>>(Total<T>(kMagnitude ? -1 : kSign) * state.least + 0);
  }
};

// The sum of squares of values divided by the largest magnitude so far.
template <class T>
struct Norm2Fold {
  struct State {
    double scale = 0, squares = 0;
  };
  static State start() { return {}; }
  static void add(State& state, T value) {
    const double magnitude = std::abs(static_cast<double>(as_term(value)));
    merge(state, {magnitude, magnitude == 0 ? 0.0 : 1.0});
  }
  static void merge(State& state, State later) {
    if (later.scale == 0) return;
    if (std::isnan(later.scale) || std::isnan(state.scale)) {
      state = {std::nan(""), 1};
    } else if (std::isinf(later.scale) || std::isinf(state.scale)) {
      state = {HUGE_VAL, 1};
    } else if (later.scale <= state.scale) {
      const double ratio = later.scale / state.scale;
      state.squares += later.squares * ratio * ratio;
    } else {
      const double ratio = state.scale / later.scale;
      state = {later.scale, later.squares + state.squares * ratio * ratio};
    }
  }
  static SumOf<T> finish(State state, std::int64_t, std::int64_t) {
    return narrow<SumOf<T>>(static_cast<Total<T>>(state.scale * std::sqrt(state.squares)));
  }
};

template <class T, class See>
void with_fold(Fold fold, See&& see) {
  switch (fold) {
    case Fold::Sum:
      return see(SumFold<T>());
    case Fold::Mean:
      return see(MeanFold<T>());
    case Fold::Min:
      return see(ExtremeFold<T, 1, false>());
    case Fold::Max:
      return see(ExtremeFold<T, -1, false>());
    case Fold::Norm1:
      return see(Norm1Fold<T>());
    case Fold::Norm2:
      return see(Norm2Fold<T>());
    case Fold::NormMax:
      return see(ExtremeFold<T, 1, true>());
  }
}

}  // namespace tessera::arrays::internal
