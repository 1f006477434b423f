#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace tessera::arrays {

// A window of shared values. Indices are relative to the first value of the window and may be
// outside the window, before it too, as long as they are inside the shared values; unlike in Python
// a negative index is not counted from the end. The object is a handle: copies and parts share the
// values, and are as thread-safe as a vector of them.
// Example: of 1 2 3 4 5 6, part(2, 5).at(-1) is 2 and part(2, 4).part(-2, 3) is 1 to 5.
template <class T>
class Buffer {
 public:
  Buffer() : Buffer(std::vector<T>()) {}
  explicit Buffer(std::vector<T> values)
      : values_(std::make_shared<std::vector<T>>(std::move(values))),
        size_(static_cast<std::int64_t>(values_->size())) {}

  std::int64_t size() const { return size_; }

  // Returns a copy of the values in the window.
  std::vector<T> values() const {
    return {values_->begin() + begin_, values_->begin() + begin_ + size_};
  }

  // Return or replace value i. Throw Error{InvalidArgument} for an index outside the shared values.
  T at(std::int64_t i) const { return (*values_)[place(i)]; }
  void put(std::int64_t i, T value) { (*values_)[place(i)] = value; }

  // Returns value i itself, which stays valid as long as a Buffer shares it. Throws as at().
  T& reference(std::int64_t i) { return (*values_)[place(i)]; }

  // Returns the window [begin, end), relative to this one. Throws Error{InvalidArgument} unless
  // begin <= end and both are inside the shared values.
  Buffer part(std::int64_t begin, std::int64_t end) const;

 private:
  std::size_t place(std::int64_t i) const;

  std::shared_ptr<std::vector<T>> values_;
  std::int64_t begin_ = 0, size_ = 0;
};

}  // namespace tessera::arrays
