#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/io/array.hpp"
#include "tessera/io/internal/binary.hpp"

namespace tessera::io::internal {

// Reads an array of numbers of NumPy's format from pieces of its file, so that the file is not in
// memory beside the numbers. Text is passed over: the array then has no elements. Throws the errors
// of read_npy.
class NpyReader {
 public:
  // `bytes` is the length of the file, and at most `most_reserved` numbers get memory before they
  // are there.
  NpyReader(std::string_view name, std::int64_t bytes, std::int64_t most_reserved)
      : name_(name), bytes_(bytes), most_reserved_(most_reserved) {}

  // Takes the next bytes. The first piece has 128 KiB or is the whole file.
  void add(std::string_view piece);

  // Returns the type and the shape; the first piece must have been added.
  const Array& array() const { return array_; }

  // Returns the array; all pieces must have been added.
  Array finish() &&;

 private:
  std::int64_t read_header(std::string_view piece);

  std::string name_;
  std::int64_t bytes_, most_reserved_;
  std::int64_t offset_ = 0;  // of the next piece in the file
  Array array_;
  Encoding encoding_;
  bool is_fortran_ = false;
  std::string rest_;  // of the last piece: less than an element
};

}  // namespace tessera::io::internal
