#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "tessera/base/half.hpp"

namespace tessera::arrays {

// The element types of arrays, the type in which each is computed, and the type of a mixed result.
//
//   type                 computed in   sums taken in   sums returned in
//   float                float         double          float
//   double               double        double          double
//   Half, BFloat16       float         double          the same type
//   int32, int64         64, 128 bits  128 bits        int64
//
// A result is rounded once to its type. A result of integers that does not fit its type is
// Error{LimitExceeded}: integer results are exact or refused.

template <class T>
concept IntegerElement = std::same_as<T, std::int32_t> || std::same_as<T, std::int64_t>;
template <class T>
concept ShortElement = std::same_as<T, Half> || std::same_as<T, BFloat16>;
template <class T>
concept Element =
    std::same_as<T, float> || std::same_as<T, double> || IntegerElement<T> || ShortElement<T>;

// The type of a sum over elements of type T.
template <Element T>
using SumOf = std::conditional_t<IntegerElement<T>, std::int64_t, T>;

namespace internal {

template <class A, class B>
struct CommonElement {
  static constexpr bool kAnyDouble = std::same_as<A, double> || std::same_as<B, double>;
  static constexpr bool kOneIsInteger = IntegerElement<A> != IntegerElement<B>;
  using Type = std::conditional_t<
      std::same_as<A, B>, A,
      std::conditional_t<kAnyDouble || kOneIsInteger, double,
                         std::conditional_t<IntegerElement<A>, std::int64_t, float>>>;
};

// Throws Error{LimitExceeded} "{value} does not fit an element of type {type}; ...".
[[noreturn]] void refuse_value(double value, const char* type);

// Returns the float next to `value` whose last bit is set if `value` is no float. Such a number
// rounds to a type of fewer bits as `value` itself does, so that two roundings give what one gives.
template <class W>
float rounded_to_odd(W value) {
  const auto near = static_cast<float>(value);
  if (!(static_cast<W>(near) != value)) return near;
  if (std::isnan(near)) return near;
  auto bits = std::bit_cast<std::uint32_t>(near);
  const W reached = static_cast<W>(near);
  if ((reached < 0 ? -reached : reached) > (value < 0 ? -value : value)) --bits;
  return std::bit_cast<float>(bits | 1u);
}

}  // namespace internal

// The type of an operation on elements of two types. Both operands are converted to it first, which
// is exact except for an int64 above 2^53 beside a floating type. The table is symmetric:
//
//              float    double  Half    BFloat16  int32   int64
//   float      float    double  float   float     double  double
//   double              double  double  double    double  double
//   Half                        Half    float     double  double
//   BFloat16                            BFloat16  double  double
//   int32                                         int32   int64
//   int64                                                 int64
template <Element A, Element B>
using Common = typename internal::CommonElement<A, B>::Type;

// Returns "float", "double", "half", "bfloat16", "int32" or "int64".
template <class T>
constexpr const char* element_name() {
  static_assert(Element<T>);  // clang 19 gives constrained functions names that others do not know
  if constexpr (std::same_as<T, float>) return "float";
  if constexpr (std::same_as<T, double>) return "double";
  if constexpr (std::same_as<T, Half>) return "half";
  if constexpr (std::same_as<T, BFloat16>) return "bfloat16";
  if constexpr (std::same_as<T, std::int32_t>) return "int32";
  return "int64";
}

// Returns the value in another element type, rounded once to nearest, ties to even. Throws
// Error{LimitExceeded} if an integer type cannot hold the rounded value; NaN fits none. Example:
// cast_value<Half>(2049.0) is 2048, cast_value<std::int32_t>(2.5f) is 2.
template <class U, class T>
U cast_value(T value) {
  static_assert(Element<U> && Element<T>);
  if constexpr (std::same_as<U, T>) {
    return value;
  } else if constexpr (ShortElement<T>) {
    return cast_value<U>(static_cast<float>(value));
  } else if constexpr (IntegerElement<U> && IntegerElement<T>) {
    if (value < std::numeric_limits<U>::min() || value > std::numeric_limits<U>::max())
      internal::refuse_value(static_cast<double>(value), element_name<U>());
    return static_cast<U>(value);
  } else if constexpr (IntegerElement<U>) {
    const double whole = std::nearbyint(static_cast<double>(value));
    constexpr double kEnd = std::same_as<U, std::int32_t> ? 0x1p31 : 0x1p63;
    if (!(whole >= -kEnd && whole < kEnd)) internal::refuse_value(whole, element_name<U>());
    return static_cast<U>(whole);
  } else if constexpr (ShortElement<U> && std::same_as<T, float>) {
    return U(value);
  } else if constexpr (ShortElement<U> && IntegerElement<T>) {
    return U(internal::rounded_to_odd(static_cast<long double>(value)));
  } else if constexpr (ShortElement<U>) {
    return U(internal::rounded_to_odd(value));
  } else {
    return static_cast<U>(value);
  }
}

}  // namespace tessera::arrays
