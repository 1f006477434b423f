#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "tessera/base/matrix.hpp"

namespace tessera {

// The bytes of an operand, with its name for messages: element (r, c) is the `size` bytes at
// data + r * row_step + c * col_step. Steps are in bytes and may be any number.
struct Footprint {
  std::string_view name;
  const std::byte* data = nullptr;
  std::int64_t rows = 0, cols = 0;
  std::int64_t row_step = 0, col_step = 0;
  std::int64_t size = 1;
};

// Returns the bytes of the elements of a view.
template <class T>
Footprint footprint(std::string_view name, MatrixView<T> view) {
  constexpr auto kSize = std::int64_t{sizeof(T)};
  return {name,
          reinterpret_cast<const std::byte*>(view.data),
          view.rows,
          view.cols,
          view.row_stride * kSize,
          view.col_stride * kSize,
          kSize};
}

// Returns the bytes of contiguous values.
template <class T>
Footprint footprint(std::string_view name, std::span<T> values) {
  return footprint(name, MatrixView<T>{values.data(), 1, std::ssize(values), 0, 1});
}

// Returns true if any byte belongs to an element of both. O(1) if the ranges of addresses are
// disjoint. Else O(rows) if the elements of a row are contiguous, and O(elements) if not.
bool share_bytes(const Footprint& a, const Footprint& b);

// Returns true if any byte belongs to two elements. O(1) if rows are contiguous and in order, else
// O(rows).
bool overlaps_itself(const Footprint& matrix);

// Throws Error{InvalidArgument} if the result of `call` overlaps one of its operands or itself,
// because parts of it would then be read after they were written, or if one of them has elements
// at a null pointer.
void check_memory(std::string_view call, const Footprint& result,
                  std::span<const Footprint> operands);

}  // namespace tessera
