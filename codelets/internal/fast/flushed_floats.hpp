#pragma once

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace tessera::codelets::internal {

// From construction to destruction operands and results below the normal floats are zeros, on
// processors that have such a mode: what add_paired_product() does by itself. What computes in
// between must not be inlined, so that no sum is moved to a place where the mode is different.
class FlushedFloats {
 public:
#if defined(__SSE__)
  FlushedFloats() noexcept : before_(_mm_getcsr()) { _mm_setcsr(before_ | kFlush); }
  ~FlushedFloats() { _mm_setcsr(before_); }
#else
  FlushedFloats() noexcept = default;
#endif
  FlushedFloats(const FlushedFloats&) = delete;
  FlushedFloats& operator=(const FlushedFloats&) = delete;

 private:
#if defined(__SSE__)
  static constexpr unsigned kFlush = 0x8040;  // results to zero, and operands as zeros
  unsigned before_;
#endif
};

}  // namespace tessera::codelets::internal
