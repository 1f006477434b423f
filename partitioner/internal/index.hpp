#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::partitioner::internal {

// Returns a position of this library, which is signed and not negative, as containers want it.
inline std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace tessera::partitioner::internal
