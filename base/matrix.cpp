#include "tessera/base/matrix.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"

namespace tessera::internal {

std::size_t matrix_elements(std::int64_t rows, std::int64_t cols) {
  if (rows < 0 || cols < 0)
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("a matrix of {} x {} elements; both sizes must be 0 or more", rows, cols));
  return static_cast<std::size_t>(checked_mul(rows, cols, "matrix elements"));
}

}  // namespace tessera::internal
