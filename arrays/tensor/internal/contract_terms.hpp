#pragma once

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <vector>

#include "tessera/arrays/tensor/coo_tensor.hpp"
#include "tessera/arrays/tensor/internal/coo_access.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera::arrays::internal {

// Numbers the places of some dimensions of a view, the last dimension fastest.
struct Places {
  std::vector<ViewAxis> axes;
  std::int64_t count = 1;

  std::uint64_t at(const std::int32_t* index) const {
    std::int64_t place = 0;
    for (const ViewAxis& axis : axes) place = place * axis.length + along(axis, index);
    return static_cast<std::uint64_t>(place);
  }

  // Writes the indices of a place to to[0 .. axes.size()).
  void write(std::uint64_t place, std::int32_t* to) const {
    for (std::size_t i = axes.size(); i-- > 0;) {
      const auto length = static_cast<std::uint64_t>(axes[i].length);
      to[i] = static_cast<std::int32_t>(place % length);
      place /= length;
    }
  }
  int bits() const {
    return count <= 1 ? 0 : static_cast<int>(std::bit_width(std::uint64_t(count - 1)));
  }
};

inline Places places_of(const std::vector<ViewAxis>& axes, const std::vector<std::size_t>& dims) {
  Places places;
  for (const std::size_t d : dims) {
    places.axes.push_back(axes[d]);
    places.count = checked_mul(places.count, axes[d].length, "places of a contraction");
  }
  return places;
}

// The dimensions of one operand: those that remain in the result and those that are summed over.
struct Operand {
  Places free, summed;
};

// Returns the axes of a dense array.
inline std::vector<ViewAxis> axes_of(const std::vector<std::int64_t>& shape) {
  std::vector<ViewAxis> axes;
  for (const std::int64_t length : shape) axes.push_back({std::ssize(axes), 0, length});
  return axes;
}

inline Operand operand_of(const std::vector<ViewAxis>& axes,
                          const std::vector<std::int64_t>& dims) {
  const auto rank = static_cast<std::int64_t>(axes.size());
  std::vector<std::size_t> summed, free;
  std::vector<bool> is_summed(axes.size(), false);
  for (const std::int64_t given : dims) {
    const std::int64_t d = given < 0 ? given + rank : given;
    if (d < 0 || d >= rank || is_summed[std::size_t(d)])
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("contract: dimension {} is not there or named twice; a tensor of "
                              "rank {} has dimensions 0..{}",
                              given, rank, rank - 1));
    is_summed[std::size_t(d)] = true;
    summed.push_back(std::size_t(d));
  }
  for (std::size_t d = 0; d < axes.size(); ++d)
    if (!is_summed[d]) free.push_back(d);
  return {places_of(axes, free), places_of(axes, summed)};
}

template <class T>
Operand operand_of(const CooTensor<T>& tensor, const std::vector<std::int64_t>& dims) {
  return operand_of(tensor.layout().axes(), dims);
}

// An entry of an operand. Its value is sorted together with its places, so that no value has to be
// fetched from a distant address after the sort.
template <class T>
struct Term {
  std::uint64_t free = 0, summed = 0;
  T value = T(0);
};

template <class T>
std::vector<Term<T>> terms_of(const CooTensor<T>& tensor, const Operand& operand) {
  std::vector<Term<T>> terms;
  visit(tensor, [&](const std::int32_t* index, T value) {
    terms.push_back({operand.free.at(index), operand.summed.at(index), value});
  });
  return terms;
}

inline void require_matching(const Places& a, const Places& b) {
  if (a.axes.size() != b.axes.size())
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("contract: {} dimensions are joined with {}; they come in pairs",
                            a.axes.size(), b.axes.size()));
  for (std::size_t i = 0; i < a.axes.size(); ++i)
    if (a.axes[i].length != b.axes[i].length)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("contract: pair {} joins dimensions of length {} and {}; they must "
                              "be equal",
                              i, a.axes[i].length, b.axes[i].length));
}

template <class T>
std::uint64_t free_of(const Term<T>& term) {
  return term.free;
}
template <class T>
std::uint64_t summed_of(const Term<T>& term) {
  return term.summed;
}

}  // namespace tessera::arrays::internal
