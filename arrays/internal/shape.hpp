#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tessera::arrays::internal {

// Returns a shape as text, for example "6 x 2", and "()" for rank 0.
std::string shape_text(std::span<const std::int64_t> shape);

// Returns the product of the dimensions. Throws Error{BadInput} for a negative dimension, and
// Error{LimitExceeded} if the product does not fit in 64 bits. A dimension of 0 does not hide an
// overflow of the others.
std::int64_t checked_elements(std::span<const std::int64_t> shape);

// Throws Error{InvalidArgument} "{what}: shapes 6 x 2 and 5 x 2 differ ..." unless they are equal.
void require_same_shape(const std::string& what, const std::vector<std::int64_t>& a,
                        const std::vector<std::int64_t>& b);

}  // namespace tessera::arrays::internal
