#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "tessera/base/error.hpp"
#include "tessera/base/overlap.hpp"
#include "tessera/host/internal/epilogue.hpp"
#include "tessera/host/internal/list_footprints.hpp"
#include "tessera/host/spmm.hpp"

namespace tessera::host::internal {

[[noreturn]] inline void refuse_spmm(const std::string& what) {
  throw Error(ErrorCode::InvalidArgument, "spmm: " + what);
}

// Checks the dense operands and options of a product with a matrix of this size. `matrix` is the
// memory of its lists (lists_of()): C must not be in it, or indices would be read after they were
// checked and overwritten.
template <class T>
void check_operands(std::int64_t rows, std::int64_t cols, MatrixView<const T> b, MatrixView<T> c,
                    const SpmmOptions<T>& options, const ListFootprints& matrix = {}) {
  if (b.rows != cols || c.rows != rows || b.cols != c.cols)
    refuse_spmm(
        fmt::format("A is {} x {}, B {} x {} and C {} x {}; B must have the columns of A as "
                    "rows, and C the rows of A and the columns of B",
                    rows, cols, b.rows, b.cols, c.rows, c.cols));
  if (!options.bias.empty() && std::ssize(options.bias) != rows)
    refuse_spmm(fmt::format("the bias has {} numbers; A has {} rows", options.bias.size(), rows));
  const MatrixView<const T> mask = options.where_positive;
  if (mask.data != nullptr && (mask.rows != c.rows || mask.cols != c.cols))
    refuse_spmm(fmt::format("where_positive is {} x {}; it must have the {} x {} elements of C",
                            mask.rows, mask.cols, c.rows, c.cols));
  check_memory(
      "spmm", footprint("C", MatrixView<const T>(c)),
      std::array{footprint("B", b), footprint("the bias", options.bias),
                 footprint("where_positive", mask.data != nullptr ? mask : MatrixView<const T>()),
                 matrix[0], matrix[1], matrix[2]});
}

// `before` is the result before the call.
template <class T>
Epilogue<T> epilogue_of(const SpmmOptions<T>& options, MatrixView<const T> before) {
  return {.alpha = options.alpha,
          .beta = options.beta,
          .before = before,
          .bias = options.bias,
          .activation = options.activation,
          .where_positive = options.where_positive};
}

}  // namespace tessera::host::internal
