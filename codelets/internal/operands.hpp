#pragma once

#include <cstdint>

#include "tessera/codelets/kernel.hpp"

// The unnamed operands of a kernel with their types put back.
namespace tessera::inline v0::codelets::internal {

template <class T>
struct Rows {
  T* data;
  std::int64_t stride;  // elements

  T* row(std::int64_t i) const { return data + i * stride; }
};

template <class In>
Rows<const In> rows_of(const Operand& operand) {
  return {static_cast<const In*>(operand.data), operand.row_stride};
}

template <class Sum>
Rows<Sum> rows_of(const Result& result) {
  return {static_cast<Sum*>(result.data), result.row_stride};
}

template <class Word>
const Word* words_of(const KernelArgs& args) {
  return static_cast<const Word*>(args.meta);
}

template <class In>
const In* values_of(const KernelArgs& args) {
  return static_cast<const In*>(args.values);
}

}  // namespace tessera::inline v0::codelets::internal
