#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>

#include "tessera/base/dims.hpp"
#include "tessera/base/executor.hpp"

namespace tessera::host::internal {

// The least work that is shared by threads. Waking them and waiting for their end takes some
// microseconds, in which one thread does about as much.
inline constexpr std::int64_t kLeastSharedSums = 1 << 19;    // multiplications with additions
inline constexpr std::int64_t kLeastSharedCopies = 1 << 15;  // elements

// Calls body(thread) on each thread of the executor, or body(0) on the calling thread alone if
// there are fewer multiplications than kLeastSharedSums. Bodies take units of work from
// SharedParts, so one of them can do all, and the bits are the same.
template <class Body>
void share_units(Executor& executor, std::int64_t multiplications, Body&& body) {
  if (multiplications < kLeastSharedSums) return body(std::int64_t{0});
  executor.for_each(executor.threads(), body);
}

// The parts of [0, count), `size` each, that threads take one after the other from a counter.
class SharedParts {
 public:
  explicit SharedParts(std::int64_t count, std::int64_t size = 1) : count_(count), size_(size) {}

  // Returns a part that no other call has returned, or nothing if none is left.
  std::optional<Range> next() {
    const std::int64_t first = size_ * next_++;
    if (first >= count_) return {};
    return Range{first, std::min(first + size_, count_)};
  }

 private:
  const std::int64_t count_, size_;
  std::atomic<std::int64_t> next_ = 0;
};

// Calls body(i) for i in [0, count) in any order: on all threads, or on the calling thread if fewer
// elements than kLeastSharedCopies are moved.
template <class Body>
void share_copies(Executor& executor, std::int64_t count, std::int64_t elements, Body&& body) {
  if (elements >= kLeastSharedCopies) return executor.for_each(count, body);
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

}  // namespace tessera::host::internal
