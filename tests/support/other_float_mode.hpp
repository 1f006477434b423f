#pragma once

#include <cfenv>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace tessera::test {

// While it lives, the thread rounds up and, on x86-64, takes denormal numbers for 0, as a caller
// may have asked for.
class OtherFloatMode {
 public:
  OtherFloatMode() {
    std::fegetenv(&before_);
    std::fesetround(FE_UPWARD);
#if defined(__SSE__)
    _mm_setcsr(_mm_getcsr() | kFlushToZero);
#endif
  }
  ~OtherFloatMode() { std::fesetenv(&before_); }
  OtherFloatMode(const OtherFloatMode&) = delete;
  OtherFloatMode& operator=(const OtherFloatMode&) = delete;

  // Returns true if the calling thread has this mode.
  static bool is_on() {
#if defined(__SSE__)
    if ((_mm_getcsr() & kFlushToZero) != kFlushToZero) return false;
#endif
    return std::fegetround() == FE_UPWARD;
  }
  // Returns true if the calling thread has nothing of it.
  static bool is_off() {
#if defined(__SSE__)
    if ((_mm_getcsr() & kFlushToZero) != 0) return false;
#endif
    return std::fegetround() == FE_TONEAREST;
  }

 private:
  static constexpr unsigned kFlushToZero = 0x8040;  // of results, and of operands

  std::fenv_t before_;
};

}  // namespace tessera::test
