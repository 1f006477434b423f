#include "tessera/base/float_mode.hpp"

#if defined(__SSE__)
#include <xmmintrin.h>
#elif !defined(__aarch64__)
#include <cfenv>
#endif

namespace tessera {
namespace {

// The control registers of the processor in one number.
#if defined(__SSE__)

// That of SSE in the lower half, and that of x87 instructions, which compute long doubles, in the
// upper half.
constexpr std::uint64_t kDefault = 0x037f'0000'1f80;   // all exceptions masked
constexpr std::uint64_t kModeBits = 0xffff'0000'ffc0;  // all but the exception flags

std::uint64_t read_mode() noexcept {
  std::uint16_t x87 = 0;
  asm volatile("fnstcw %0" : "=m"(x87));
  return _mm_getcsr() | std::uint64_t{x87} << 32;
}
void write_mode(std::uint64_t mode) noexcept {
  const auto x87 = static_cast<std::uint16_t>(mode >> 32);
  asm volatile("fldcw %0" : : "m"(x87));
  _mm_setcsr(static_cast<unsigned>(mode & 0xffff));
}

#elif defined(__aarch64__)

constexpr std::uint64_t kDefault = 0;
constexpr std::uint64_t kModeBits = ~std::uint64_t{0};  // FPCR has no exception flags

std::uint64_t read_mode() noexcept {
  std::uint64_t mode = 0;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
void write_mode(std::uint64_t mode) noexcept { asm volatile("msr fpcr, %0" : : "r"(mode)); }

#else

constexpr std::uint64_t kDefault = FE_TONEAREST;
constexpr std::uint64_t kModeBits = ~std::uint64_t{0};

std::uint64_t read_mode() noexcept { return static_cast<std::uint64_t>(std::fegetround()); }
void write_mode(std::uint64_t mode) noexcept { std::fesetround(static_cast<int>(mode)); }

#endif

}  // namespace

DefaultFloatMode::DefaultFloatMode() noexcept
    : before_(read_mode()), is_changed_((before_ & kModeBits) != kDefault) {
  if (is_changed_) write_mode(kDefault);
}

DefaultFloatMode::~DefaultFloatMode() {
  if (is_changed_) write_mode(before_);
}

}  // namespace tessera
