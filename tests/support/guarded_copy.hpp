#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "tessera/base/int_math.hpp"

namespace tessera::test {

// A copy of some elements that ends where the memory of this program ends: the page after the last
// one can neither be read nor written. Code that touches a byte too many ends the test, also where
// AddressSanitizer sees nothing, as in a masked load. Throws std::bad_alloc.
template <class T>
class GuardedCopy {
 public:
  GuardedCopy(const T* from, std::int64_t count) {
    const std::int64_t page = sysconf(_SC_PAGESIZE), bytes = count * std::int64_t(sizeof(T));
    const std::int64_t used = round_up(bytes, page);
    size_ = std::size_t(used + page);
    memory_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
    auto* begin = static_cast<std::byte*>(memory_);
    mprotect(begin + used, std::size_t(page), PROT_NONE);
    std::memcpy(begin + used - bytes, from, std::size_t(bytes));
    data_ = reinterpret_cast<T*>(begin + used - bytes);
  }
  GuardedCopy(const GuardedCopy&) = delete;
  GuardedCopy& operator=(const GuardedCopy&) = delete;
  ~GuardedCopy() { munmap(memory_, size_); }

  T* data() { return data_; }

 private:
  std::size_t size_ = 0;
  void* memory_ = nullptr;
  T* data_ = nullptr;
};

}  // namespace tessera::test
