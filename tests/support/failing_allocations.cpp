#include "tessera/tests/support/failing_allocations.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

// The operators are in a source of their own, where the compiler cannot put one of a pair in place
// and not the other.
namespace {

std::atomic<long> count = 0, sum = 0, size = -1, of_that_size = 0;
std::atomic<long> left = -1;  // calls that may throw until one throws; negative: none does

void note(std::size_t bytes) {
  ++count;
  sum += static_cast<long>(bytes);
  if (static_cast<long>(bytes) == size) ++of_that_size;
}

void* checked(void* memory) {
  if (memory != nullptr && (left < 0 || left-- != 0)) return memory;
  std::free(memory);
  throw std::bad_alloc();
}

}  // namespace

long tessera::test::allocations() { return count; }
long tessera::test::allocated_bytes() { return sum; }
long tessera::test::allocations_of_that_size() { return of_that_size; }
void tessera::test::count_allocations_of(long bytes) {
  size = bytes;
  of_that_size = 0;
}

void tessera::test::fail_allocation(long nth) { left = std::max(nth, -1L); }
bool tessera::test::allocation_failed() { return left < 0; }

void* operator new(std::size_t bytes) {
  note(bytes);
  return checked(std::malloc(std::max<std::size_t>(bytes, 1)));
}
void* operator new(std::size_t bytes, std::align_val_t line) {
  note(bytes);
  const auto step = static_cast<std::size_t>(line);
  return checked(std::aligned_alloc(step, (bytes + step) / step * step));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  note(bytes);
  return std::malloc(std::max<std::size_t>(bytes, 1));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
