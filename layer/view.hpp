#pragma once

#include <cstdint>
#include <type_traits>

#include "tessera/base/data_type.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/overlap.hpp"

namespace tessera::layer {

// A strided view of a matrix, like MatrixView, whose element type is known when the program runs. A
// view of any of the three types converts to it. `Void` is void or const void. O(1).
template <class Void>
struct TypedView {
  template <class T>
  using Element = std::conditional_t<std::is_const_v<Void>, const T, T>;

  Void* data = nullptr;  // null: there is no operand
  DataType type = DataType::Float;
  std::int64_t rows = 0, cols = 0;
  std::int64_t row_stride = 0, col_stride = 1;  // in elements

  TypedView() = default;
  template <class T>
    requires(std::is_const_v<Void> || !std::is_const_v<T>)
  TypedView(MatrixView<T> view)
      : data(view.data),
        type(data_type_of<std::remove_const_t<T>>()),
        rows(view.rows),
        cols(view.cols),
        row_stride(view.row_stride),
        col_stride(view.col_stride) {}

  bool empty() const { return data == nullptr; }

  // Returns the view of elements of type T, which must be `type`.
  template <class T>
  MatrixView<Element<T>> as() const {
    return {static_cast<Element<T>*>(data), rows, cols, row_stride, col_stride};
  }
};

using ConstView = TypedView<const void>;
using View = TypedView<void>;

// Returns the bytes of the elements of a view, with its name for messages.
template <class Void>
Footprint footprint(std::string_view name, const TypedView<Void>& view) {
  return with_type(view.type,
                   [&]<class T>(T) { return tessera::footprint(name, view.template as<T>()); });
}

}  // namespace tessera::layer
