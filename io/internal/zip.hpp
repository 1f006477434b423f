#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/base/input_file.hpp"

namespace tessera::io::internal {

// Returns true if the library was built with libzip.
bool can_unpack();

// Reads single files of a zip archive; files that nobody asks for stay packed. All files that are
// read from one object may unpack to max(16 MiB, 256 times the bytes of the archive) together, and
// to 4 GiB at most. The bytes, the file and the name must outlive the object, which is for one
// thread at a time.
class ZipArchive {
 public:
  // Throws Error{BadInput} "<name>: ..." if the bytes are no archive or contain a name twice.
  ZipArchive(std::string_view bytes, std::string_view name);

  // The same for a file, of which only what is asked for is read.
  ZipArchive(const InputFile& file, const std::string& path);
  ~ZipArchive();

  ZipArchive(const ZipArchive&) = delete;
  ZipArchive& operator=(const ZipArchive&) = delete;

  bool has(const std::string& member) const;

  // Unpacks a file in pieces, so that memory grows with the bytes that are there and not with the
  // length that a header declares. Throws Error{BadInput} if the file is missing, damaged or
  // encrypted, and Error{LimitExceeded} if it unpacks to more than the limit.
  std::string read(const std::string& member);

  // Unpacks a file and passes its pieces on, of a megabyte each but the last; stops when `take`
  // returns false, and the bytes do not count then. Throws the errors of read().
  void read_pieces(const std::string& member,
                   const std::function<bool(std::string_view piece)>& take);

  // Returns the length that the archive declares for a file, and that of the archive. A file that
  // has another length is refused when it is read.
  std::int64_t declared_bytes(const std::string& member) const;
  std::int64_t packed_bytes() const;

 private:
  friend class Unpacking;
  struct State;
  std::unique_ptr<State> state_;
};

// A file of an archive that is unpacked from front to back, a piece at a time, so that no more of
// it than a piece is ever in memory. The limit on all bytes of an archive does not count it.
class Unpacking {
 public:
  // Throws Error{BadInput} if the file is missing, damaged or encrypted. The archive must outlive
  // the object, and is used by nobody else meanwhile.
  Unpacking(ZipArchive& archive, const std::string& member);
  ~Unpacking();

  // Returns the next bytes of the file: `most`, or fewer at its end. Throws Error{BadInput} if they
  // are damaged.
  std::string next(std::size_t most);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The files of an archive in their order, each as its name and its content.
using Members = std::vector<std::pair<std::string, std::string>>;

// The levels of deflate. For columns and values of scattered elements the smallest files take five
// times as long as the fastest, and are 1 % smaller; equal values become four times smaller.
enum class PackLevel { Fastest = 1, Smallest = 9 };

// Returns a deflated archive with a fixed date: equal members give equal bytes.
std::string pack(const Members& members, PackLevel level = PackLevel::Fastest);

}  // namespace tessera::io::internal
