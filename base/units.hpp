#pragma once

#include <compare>
#include <cstdint>

namespace tessera {

// A count of one unit. Counts of different units do not mix, and a plain number is converted to a
// count only explicitly. Overflow is not checked.
// Example: Cycles{3} + Cycles{4} == Cycles{7}; Cycles{3} * 2 == Cycles{6}; Cycles + Bytes does not
// compile.
template <class Unit>
struct Quantity {
  std::int64_t value = 0;

  constexpr Quantity() = default;
  constexpr explicit Quantity(std::int64_t v) : value(v) {}

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity o) { return value += o.value, *this; }
  constexpr Quantity& operator-=(Quantity o) { return value -= o.value, *this; }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator*(Quantity a, std::int64_t n) { return Quantity(a.value * n); }
  friend constexpr Quantity operator*(std::int64_t n, Quantity a) { return a * n; }
};

using Cycles = Quantity<struct CyclesUnit>;  // of the machine's clock
using Bytes = Quantity<struct BytesUnit>;    // of memory and exchange
using Words = Quantity<struct WordsUnit>;    // of bucket meta-information, 16 or 32 bits each

// An index of one kind of object. It has no arithmetic, and conversions from and to plain numbers
// are explicit.
template <class Kind>
struct Id {
  std::int32_t value = 0;

  constexpr Id() = default;
  constexpr explicit Id(std::int64_t v) : value(static_cast<std::int32_t>(v)) {}
  constexpr auto operator<=>(const Id&) const = default;
};

// The index of a tile of a machine, 0 .. tiles - 1.
using TileId = Id<struct TileKind>;

}  // namespace tessera
