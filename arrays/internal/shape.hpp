#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tessera::arrays::internal {

// "6 x 2"; "()" for rank 0.
std::string shape_text(std::span<const std::int64_t> shape);

// The product of the dimensions; Error{BadInput} for a negative one, Error{LimitExceeded} when it
// leaves 64 bits. A dimension of 0 hides no overflow of the others.
std::int64_t checked_elements(std::span<const std::int64_t> shape);

// Error{InvalidArgument} "{what}: shapes 6 x 2 and 5 x 2 differ ..." unless they are the same.
void require_same_shape(const std::string& what, const std::vector<std::int64_t>& a,
                        const std::vector<std::int64_t>& b);

}  // namespace tessera::arrays::internal
