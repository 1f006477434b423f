#include "tessera/tests/runtime/counted_allocations.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

// In a source of its own, where the compiler cannot put one of a pair in place and not the other.
namespace {

std::atomic<long> count = 0, size = -1, of_that_size = 0;

void note(std::size_t bytes) {
  ++count;
  if (static_cast<long>(bytes) == size) ++of_that_size;
}

void* counted(void* memory, std::size_t bytes) {
  note(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

long tessera::test::allocations() { return count; }
long tessera::test::allocations_of_that_size() { return of_that_size; }
void tessera::test::count_allocations_of(long bytes) {
  size = bytes;
  of_that_size = 0;
}

void* operator new(std::size_t bytes) {
  return counted(std::malloc(std::max<std::size_t>(bytes, 1)), bytes);
}
void* operator new(std::size_t bytes, std::align_val_t line) {
  const auto step = static_cast<std::size_t>(line);
  return counted(std::aligned_alloc(step, (bytes + step) / step * step), bytes);
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
