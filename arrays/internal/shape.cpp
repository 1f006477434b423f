#include "tessera/arrays/internal/shape.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera::arrays::internal {

std::string shape_text(std::span<const std::int64_t> shape) {
  return shape.empty() ? "()" : fmt::format("{}", fmt::join(shape, " x "));
}

std::int64_t checked_elements(std::span<const std::int64_t> shape) {
  std::int64_t product = 1;
  bool is_empty = false;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 0)
      throw Error(ErrorCode::BadInput,
                  fmt::format("dimension {} of a shape is {}; the least is 0", d, shape[d]));
    if (shape[d] == 0)
      is_empty = true;
    else
      product = checked_mul(product, shape[d], "elements of an array of " + shape_text(shape));
  }
  return is_empty ? 0 : product;
}

void require_same_shape(const std::string& what, const std::vector<std::int64_t>& a,
                        const std::vector<std::int64_t>& b) {
  if (a == b) return;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("{}: shapes {} and {} differ; they must be the same", what, shape_text(a),
                          shape_text(b)));
}

}  // namespace tessera::arrays::internal
