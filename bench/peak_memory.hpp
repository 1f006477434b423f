#pragma once

#include <cstdint>
#include <functional>

namespace tessera::bench {

// Returns by how many bytes the peak of resident memory during a call exceeds the resident memory
// before it. Works on Linux; throws std::runtime_error elsewhere.
double peak_memory(const std::function<void()>& body);

}  // namespace tessera::bench
