#pragma once

#include <cstddef>
#include <vector>

namespace tessera {

// Memory that begins on a cache line, so that vector loads of aligned rows never straddle two.
// From 1 MiB on in pages of 2 MiB where the system has them (Linux): what is meant to stay in L2
// then lies in it without gaps, where small pages share some of its sets and leave others empty.
// At most 1 MiB more than asked for. Throws std::bad_alloc. Thread-safe.
void* allocate_lines(std::size_t bytes);
// `bytes` as it was allocated.
void free_lines(void* memory, std::size_t bytes);

// Asks the system for large pages under memory that is about to be written from end to end: fewer
// faults, and fewer addresses to look up. A wish: without large pages nothing changes.
void want_large_pages(void* memory, std::size_t bytes);

// For standard containers.
template <class T>
struct LineAllocator {
  using value_type = T;

  LineAllocator() = default;
  template <class U>
  LineAllocator(const LineAllocator<U>&) {}
  T* allocate(std::size_t count) { return static_cast<T*>(allocate_lines(count * sizeof(T))); }
  void deallocate(T* memory, std::size_t count) { free_lines(memory, count * sizeof(T)); }
  friend bool operator==(const LineAllocator&, const LineAllocator&) { return true; }
};

// A std::vector whose first element begins a cache line.
template <class T>
using AlignedVector = std::vector<T, LineAllocator<T>>;

}  // namespace tessera
