#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tessera/base/input_file.hpp"

namespace tessera::io::internal {

// A text that readers take piece by piece: one that is in memory, or the content of a plain file.
// Any number of threads may read at a time.
class TextSource {
 public:
  virtual ~TextSource() = default;

  virtual std::int64_t bytes() const = 0;

  // Returns up to `count` bytes from the offset `begin` on, fewer at the end of the text only.
  // `buffer` may be used to hold them and must live as long as they are used.
  virtual std::string_view piece(std::int64_t begin, std::int64_t count,
                                 std::string& buffer) const = 0;
};

class TextInMemory final : public TextSource {
 public:
  explicit TextInMemory(std::string_view text) : text_(text) {}  // which must outlive the object
  std::int64_t bytes() const override { return static_cast<std::int64_t>(text_.size()); }
  std::string_view piece(std::int64_t begin, std::int64_t count, std::string&) const override {
    return text_.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(count));
  }

 private:
  std::string_view text_;
};

class TextOfFile final : public TextSource {
 public:
  explicit TextOfFile(const std::string& path) : file_(path) {}  // throws as InputFile does
  std::int64_t bytes() const override { return file_.bytes(); }
  std::string_view piece(std::int64_t begin, std::int64_t count,
                         std::string& buffer) const override {
    buffer.resize(static_cast<std::size_t>(count));
    buffer.resize(static_cast<std::size_t>(file_.read(begin, count, buffer.data())));
    return buffer;
  }

 private:
  InputFile file_;
};

// Returns the whole lines whose first byte is at one of the offsets from `begin` up to `end`, which
// may be cut off at the end of the text. A line begins at `begin` if a line end is before it;
// `first` is the offset at which the first line of all begins.
std::string_view lines_between(const TextSource& text, std::int64_t first, std::int64_t begin,
                               std::int64_t end, std::string& buffer);

}  // namespace tessera::io::internal
