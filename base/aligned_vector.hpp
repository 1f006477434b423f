#pragma once

#include <cstddef>
#include <vector>

namespace tessera {

// Allocates memory that begins on a cache line, so that a vector load of an aligned row never
// crosses a line boundary. From 1 MiB on the memory begins on a large page (2 MiB), which the
// system is asked for (Linux): data that is meant to stay in L2 then fills all sets of L2 evenly,
// whereas small pages share some sets and leave others empty. At most 1 MiB more than `bytes` is
// allocated. Throws std::bad_alloc. Thread-safe.
void* allocate_lines(std::size_t bytes);

// Frees memory of allocate_lines; `bytes` must be the value that was passed there.
void free_lines(void* memory, std::size_t bytes);

// Asks the system for large pages under memory that is about to be written from end to end: fewer
// page faults, and fewer addresses to translate. The call is a hint: without large pages nothing
// changes.
void want_large_pages(void* memory, std::size_t bytes);

// Allocator for standard containers that uses allocate_lines.
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

// A std::vector whose first element is at the beginning of a cache line.
template <class T>
using AlignedVector = std::vector<T, LineAllocator<T>>;

}  // namespace tessera
