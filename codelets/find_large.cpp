#include "tessera/codelets/find_large.hpp"

#include "tessera/codelets/internal/fast/scores.hpp"

namespace tessera::codelets {

std::int64_t find_large(std::span<const float> values, float threshold,
                        std::span<std::uint32_t> positions) noexcept {
  return internal::find_large_values(values.data(), std::ssize(values), threshold,
                                     positions.data());
}

}  // namespace tessera::codelets
