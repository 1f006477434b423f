#include "tessera/base/aligned_vector.hpp"

#include <algorithm>
#include <cstdint>
#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace tessera {
namespace {

constexpr std::size_t kLine = 64;                // bytes; also the width of the widest vectors
constexpr std::size_t kLargePage = 2048 * 1024;  // bytes, of x86-64 and of most ARM systems

// Returns the number of bytes to place in large pages: a last page that would be less than half
// full is left out.
std::size_t in_large_pages(std::size_t bytes) {
  return (bytes + kLargePage / 2) / kLargePage * kLargePage;
}

std::align_val_t alignment(std::size_t bytes) {
  return std::align_val_t(in_large_pages(bytes) > 0 ? kLargePage : kLine);
}

}  // namespace

void* allocate_lines(std::size_t bytes) {
  const std::size_t large = in_large_pages(bytes);
  void* memory = ::operator new(std::max(bytes, large), alignment(bytes));
  if (large > 0) want_large_pages(memory, large);
  return memory;
}

void free_lines(void* memory, std::size_t bytes) { ::operator delete(memory, alignment(bytes)); }

void want_large_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#ifdef __linux__
  constexpr std::uintptr_t kPage = 4096;  // madvise takes whole pages
  const auto first = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t begin = (first + kPage - 1) / kPage * kPage;
  const std::uintptr_t end = (first + bytes) / kPage * kPage;
  if (end > begin) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

}  // namespace tessera
