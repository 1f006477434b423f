#pragma once

#include <cstdint>
#include <string>

namespace tessera {

// A plain file that is open for reading in pieces. Any number of threads may read at a time.
class InputFile {
 public:
  // Throws Error{BadInput} "<path>: reason" for a missing file, a directory, a pipe and a file that
  // cannot be opened.
  explicit InputFile(const std::string& path);
  ~InputFile();

  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  // Returns the length of the file when it was opened.
  std::int64_t bytes() const { return bytes_; }

  // Copies `count` bytes from the offset `begin` on to `to` and returns how many there were, which
  // is less if the file ends before. Throws Error{BadInput} if the system cannot read.
  std::int64_t read(std::int64_t begin, std::int64_t count, char* to) const;

 private:
  std::string path_;
  int file_ = -1;
  std::int64_t bytes_ = 0;
};

}  // namespace tessera
