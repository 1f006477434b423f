#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace tessera::inline v0 {

// Memory that begins on a cache line, so that vector loads of aligned rows never straddle two.
template <class T>
struct LineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};  // bytes; also the width of the widest vectors

  LineAllocator() = default;
  template <class U>
  LineAllocator(const LineAllocator<U>&) {}
  T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), kLine));
  }
  void deallocate(T* memory, std::size_t) { ::operator delete(memory, kLine); }
  friend bool operator==(const LineAllocator&, const LineAllocator&) { return true; }
};

// A std::vector whose first element begins a cache line.
template <class T>
using AlignedVector = std::vector<T, LineAllocator<T>>;

}  // namespace tessera::inline v0
