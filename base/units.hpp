#pragma once

#include <compare>
#include <cstdint>

namespace tessera {

// A count of one unit. Different units do not mix; a plain number becomes one only explicitly.
// Example: Cycles{3} + Cycles{4} == Cycles{7}; Cycles{3} * 2 == Cycles{6}; Cycles + Bytes: no.
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

// Units: of the machine's clock; of memory and exchange.
using Cycles = Quantity<struct CyclesUnit>;
using Bytes = Quantity<struct BytesUnit>;
using Words = Quantity<struct WordsUnit>;  // words of bucket meta-information, 16 or 32 bits each

// An index into one kind of thing. No arithmetic; explicit both ways.
template <class Kind>
struct Id {
  std::int32_t value = 0;

  constexpr Id() = default;
  constexpr explicit Id(std::int64_t v) : value(static_cast<std::int32_t>(v)) {}
  constexpr auto operator<=>(const Id&) const = default;
};

// A tile of a machine, 0 .. tiles - 1.
using TileId = Id<struct TileKind>;

}  // namespace tessera
