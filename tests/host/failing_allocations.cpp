#include "tessera/tests/host/failing_allocations.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

// In a source of its own, where the compiler cannot put one of a pair in place and not the other.
namespace {

std::atomic<long> count = 0;
std::atomic<long> failing = -1;  // value of `count` at which a call throws

void* counted(void* memory) {
  const bool fails = count++ == failing;
  if (memory != nullptr && !fails) return memory;
  std::free(memory);
  throw std::bad_alloc();
}

}  // namespace

long tessera::test::allocations() { return count; }

void tessera::test::fail_allocation(long nth) { failing = nth < 0 ? -1 : count + nth; }

void* operator new(std::size_t bytes) {
  return counted(std::malloc(std::max<std::size_t>(bytes, 1)));
}
void* operator new(std::size_t bytes, std::align_val_t line) {
  const auto step = static_cast<std::size_t>(line);
  return counted(std::aligned_alloc(step, (bytes + step) / step * step));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++count;
  return std::malloc(std::max<std::size_t>(bytes, 1));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
