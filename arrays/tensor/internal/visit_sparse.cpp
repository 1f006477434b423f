#include "tessera/arrays/tensor/internal/visit_sparse.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tessera/base/error.hpp"

namespace tessera::arrays::internal {

void throw_not_a_matrix(const std::vector<std::int64_t>& shape) {
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("a tensor of shape [{}] is no matrix; select a part that has two "
                          "dimensions",
                          fmt::join(shape, ", ")));
}

void throw_not_a_vector(const std::vector<std::int64_t>& shape) {
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("shape [{}] is no vector; select a part of which all dimensions but one "
                          "have length 1",
                          fmt::join(shape, ", ")));
}

}  // namespace tessera::arrays::internal
