#include "tessera/arrays/mapped/buffer.hpp"

#include <fmt/format.h>

#include "tessera/arrays/internal/exact.hpp"
#include "tessera/base/error.hpp"

namespace tessera::arrays {

template <class T>
std::size_t Buffer<T>::place(std::int64_t i) const {
  const auto shared = static_cast<std::int64_t>(values_->size());
  if (i < -begin_ || i >= shared - begin_)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("index {} of a buffer; the shared values reach from {} to {}", i,
                            -begin_, shared - begin_ - 1));
  return static_cast<std::size_t>(begin_ + i);
}

template <class T>
Buffer<T> Buffer<T>::part(std::int64_t begin, std::int64_t end) const {
  const auto shared = static_cast<std::int64_t>(values_->size());
  if (begin < -begin_ || end < begin || end > shared - begin_)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("part [{}, {}) of a buffer; the shared values reach from {} to {}",
                            begin, end, -begin_, shared - begin_ - 1));
  Buffer result = *this;
  result.begin_ += begin;
  result.size_ = end - begin;
  return result;
}

#define TESSERA_INSTANTIATE_BUFFER(T) template class Buffer<T>;

TESSERA_FOR_EACH_ELEMENT(TESSERA_INSTANTIATE_BUFFER)

#undef TESSERA_INSTANTIATE_BUFFER

}  // namespace tessera::arrays
