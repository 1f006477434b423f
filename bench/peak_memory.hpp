#pragma once

#include <cstdint>
#include <functional>

namespace tessera::bench {

// The most resident memory during a call over what was resident before it, in bytes. Linux only;
// std::runtime_error elsewhere.
double peak_memory(const std::function<void()>& body);

}  // namespace tessera::bench
