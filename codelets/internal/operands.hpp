#pragma once

#include <algorithm>
#include <cstdint>

#include "tessera/codelets/internal/arithmetic.hpp"
#include "tessera/codelets/kernel.hpp"

// Typed views of the untyped operands of a kernel.
namespace tessera::codelets::internal {

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

// Writes zeros, for reference kernels that replace their output.
template <class Sum>
void clear_rows(const Result& result, std::int64_t first, std::int64_t count) {
  for (std::int64_t i = first; i < first + count; ++i)
    std::fill_n(rows_of<Sum>(result).row(i), result.z, Sum());
}

// Adds a sum of GradW to its gradient, or replaces it, for the reference kernels.
template <class Sum>
void add_gradient(const KernelArgs& args, Sum& gradient, Sum sum) {
  gradient = add(args.replaces ? Sum() : gradient, sum);
}

template <class Word>
const Word* words_of(const KernelArgs& args) {
  return static_cast<const Word*>(args.meta);
}

template <class In>
const In* values_of(const KernelArgs& args) {
  return static_cast<const In*>(args.values);
}

}  // namespace tessera::codelets::internal
