#include "tessera/tests/planner/solver/allocation_count.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::int64_t> g_count{0};
}

// Replaced for the whole program, in a source of its own: where a compiler sees these bodies inline
// it takes malloc and delete for a mismatch.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++g_count;
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void* operator new(std::size_t bytes) {
  if (void* p = operator new(bytes, std::nothrow)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace tessera::planner::solver::test {

std::int64_t allocation_count() { return g_count; }

}  // namespace tessera::planner::solver::test
