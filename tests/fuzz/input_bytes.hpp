#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tessera::fuzz {

// Reads the input of a fuzz target piece by piece. After the end of the input every number is its
// least value, so that any input is complete.
class InputBytes {
 public:
  explicit InputBytes(std::span<const std::uint8_t> data) : data_(data) {}

  bool is_empty() const { return at_ >= data_.size(); }

  std::uint8_t byte() { return is_empty() ? std::uint8_t(0) : data_[at_++]; }

  bool flag() { return (byte() & 1) != 0; }

  // Returns a number in least..most from one byte, or from eight bytes for larger ranges.
  std::int64_t number(std::int64_t least, std::int64_t most) {
    const std::uint64_t range = std::uint64_t(most) - std::uint64_t(least);
    const std::uint64_t drawn = range < 256 ? byte() : word();
    return least + std::int64_t(range == ~std::uint64_t(0) ? drawn : drawn % (range + 1));
  }

  // Returns any number of 64 bits; half of them are small.
  std::int64_t any_number() {
    return flag() ? std::int64_t(word()) : std::int64_t(std::int8_t(byte()));
  }

  // Returns at most `most` numbers in the range.
  template <class T>
  std::vector<T> numbers(std::int64_t most, std::int64_t lowest, std::int64_t highest) {
    std::vector<T> result(static_cast<std::size_t>(number(0, most)));
    for (T& value : result) value = T(number(lowest, highest));
    return result;
  }

  std::string_view rest() {
    const std::size_t begin = std::min(at_, data_.size());
    at_ = data_.size();
    return {reinterpret_cast<const char*>(data_.data()) + begin, data_.size() - begin};
  }

 private:
  std::uint64_t word() {
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | byte();
    return value;
  }

  std::span<const std::uint8_t> data_;
  std::size_t at_ = 0;
};

}  // namespace tessera::fuzz
