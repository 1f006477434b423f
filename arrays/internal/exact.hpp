#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "tessera/arrays/ops/element.hpp"

// Expands `of` for each type of an element.
#define TESSERA_FOR_EACH_ELEMENT(of) \
  of(float) of(double) of(Half) of(BFloat16) of(std::int32_t) of(std::int64_t)

namespace tessera::arrays::internal {

__extension__ using Int128 = __int128;

// The type in which elements of type T are computed. Sums, differences and products of two integers
// fit in it.
template <class T>
using Wide = std::conditional_t<
    std::same_as<T, double>, double,
    std::conditional_t<std::same_as<T, std::int32_t>, std::int64_t,
                       std::conditional_t<std::same_as<T, std::int64_t>, Int128, float>>>;

// The type in which sums over elements of type T are taken. 2^64 products of integers fit in it
// if the elements have 32 bits; products of two 64-bit integers have to be added one by one with
// add_exactly.
template <class T>
using Total = std::conditional_t<IntegerElement<T>, Int128, double>;

template <class T>
Wide<T> widen(T value) {
  return static_cast<Wide<T>>(value);
}

// Returns the value in the type U, rounded once. Throws Error{LimitExceeded} if an integer does not
// fit.
template <class U, class W>
U narrow(W value) {
  if constexpr (IntegerElement<U>) {
    if (value < W(std::numeric_limits<U>::min()) || value > W(std::numeric_limits<U>::max()))
      refuse_value(static_cast<double>(value), element_name<U>());
    return static_cast<U>(value);
  } else {
    return cast_value<U>(value);
  }
}

// Adds to a sum. Throws Error{LimitExceeded} if an integer sum leaves 128 bits.
template <class W>
void add_exactly(W& sum, W value) {
  if constexpr (std::same_as<W, Int128>) {
    if (__builtin_add_overflow(sum, value, &sum))
      refuse_value(static_cast<double>(value), "128 bits");
  } else {
    sum += value;
  }
}

// Returns the smaller value, or NaN if one is NaN.
template <class W>
W least_of(W a, W b) {
  if constexpr (std::floating_point<W>)
    if (std::isnan(a) || std::isnan(b)) return a + b;
  return b < a ? b : a;
}

// Returns an element in the type of sums, and the product of two.
template <class T>
Total<T> as_term(T value) {
  return static_cast<Total<T>>(widen(value));
}
template <class T>
Total<T> product_of(T a, T b) {
  return as_term(a) * as_term(b);
}

}  // namespace tessera::arrays::internal
