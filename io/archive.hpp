#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/io/array.hpp"
#include "tessera/json/value.hpp"

namespace tessera::io {

namespace internal {
class TextSource;
}

// A saved state of a program in a file: named lists of numbers, and a head of named fields. The
// file has the layout of .safetensors; its notes hold the version of this form, a checksum of the
// whole file, what kind of state it is, and the head as JSON.
//
// One function describes a kind of state for both directions. Each call adds its variable to an
// archive that is written, and fills it from an archive that is read:
//
//   void describe(io::Archive& archive, Run& run) {
//     archive.whole("step", run.step, {0, 1'000'000});
//     archive.list("values", run.values);
//   }
//   io::Archive written("run");
//   describe(written, run);
//   write_file(path, written.bytes());
//
//   const auto read = io::Archive::open(path, "run");
//   describe(*read, run);
//   read->finish();
//
// A file that is read is not trusted: the version, the checksum, the kind, and the type, length and
// numbers of every list are checked here and nowhere else. Errors of a file are Error{BadInput}
// "<name>: " with the field, or the list and its index. A state that is written obeys the same
// rules, so that what is saved can be read: its errors are Error{InvalidArgument} with the same
// place, and are thrown while it is described. Describe all of it, and take bytes(), before a file
// is replaced or removed. After an error the archive can only be destroyed. The memory that reading
// takes depends on the length of the file, whatever its head says.
//
// One thread at a time uses an object.
class Archive {
 public:
  // The legal values of a whole number.
  struct Bounds {
    std::int64_t least = 0, most = 0;
  };

  // The side of a shape that is not known before the list is read.
  static constexpr std::int64_t kAnyCount = -1;

  // Compare reads the whole file to compute its checksum. Skip trusts that somebody else has.
  enum class Checksum { Compare, Skip };

  // Starts an archive to write. The kind says in words what the state is: "a training run".
  explicit Archive(std::string kind);

  // Starts to read a file, which is not loaded as a whole, or bytes, which must outlive the object.
  // Throws Error{BadInput} if the file is missing, is no archive, has another version, was cut or
  // changed, or holds another kind of state.
  static std::unique_ptr<Archive> open(const std::string& path, std::string_view kind,
                                       Checksum checksum = Checksum::Compare);
  static std::unique_ptr<Archive> of_bytes(std::string_view bytes, std::string_view name,
                                           std::string_view kind);

  ~Archive();
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  bool is_read() const { return file_ != nullptr; }

  // Fields of the head. Keys and names of lists are those of the innermost within().
  void flag(std::string_view key, bool& value);
  void whole(std::string_view key, std::int64_t& value, Bounds legal);
  void number(std::string_view key, double& value);  // finite
  void text(std::string_view key, std::string& value);

  // A list of numbers [count], or a table [count][columns] row by row; the count may be kAnyCount.
  // T is float, double, Half, BFloat16, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t or
  // std::uint32_t. Real numbers must be finite, and `columns` of a list that is written at least 1.
  template <class T>
  void list(std::string_view name, std::vector<T>& numbers,
            const std::vector<std::int64_t>& shape = {kAnyCount});

  // Appends a range of a list of `count` numbers to `numbers`, for archives that are read.
  template <class T>
  void append_part(std::string_view name, Range part, std::int64_t count, std::vector<T>& numbers);

  // Describes something in names that begin with `name` and a point.
  void within(std::string_view name, const std::function<void()>& describe_it);

  // Describes each item of a list: their number as the field `name`s, then each item within the
  // name and its number from 1 on. An archive that is read replaces the list.
  template <class Item, class Describe>
  void items(std::string_view name, std::vector<Item>& list, Bounds legal, Describe describe_it) {
    auto count = std::int64_t(list.size());
    whole(std::string(name) + "s", count, legal);
    if (is_read()) list.clear();
    for (std::int64_t i = 0; i < count; ++i) {
      if (is_read()) list.emplace_back();
      within(std::string(name) + std::to_string(i + 1), [&] { describe_it(list[std::size_t(i)]); });
    }
  }

  // Throws Error{BadInput} for fields and lists that nobody asked for.
  void finish() const;

  // Returns the file of what was described, in which every name must differ. Equal states give
  // equal bytes.
  std::string bytes();

  // Returns the checksum of the file that is read, or that bytes() returned.
  std::uint32_t checksum() const { return checksum_; }

  // Throws Error{BadInput} "<name>: <reason>", or Error{InvalidArgument} if the state is written.
  [[noreturn]] void refuse(const std::string& reason) const;

 private:
  Archive(std::unique_ptr<const internal::TextSource> file, std::string_view name,
          std::string_view kind, Checksum checksum);

  void compare_checksum();
  void read_head(std::string_view kind);
  std::string full(std::string_view name) const { return prefix_ + std::string(name); }
  json::Value take(std::string_view key);
  template <class T, class... Legal>
  void field(std::string_view key, T& value, const Legal&... legal);
  const TensorInfo& tensor(std::string_view name, ElementType type,
                           const std::vector<std::int64_t>& legal);
  void check(const TensorInfo& tensor, ElementType type,
             const std::vector<std::int64_t>& legal) const;
  template <class T>
  void check_finite(std::string_view list, std::int64_t first, std::span<const T> numbers) const;
  template <class T>
  void append(const TensorInfo& tensor, Range part, std::vector<T>& to) const;

  std::string name_, prefix_;
  // Written.
  std::string kind_;
  json::Object head_;
  std::vector<NamedTensor> tensors_;
  // Read.
  std::unique_ptr<const internal::TextSource> file_;
  std::uint32_t checksum_ = 0;
  std::int64_t data_begin_ = 0;
  std::map<std::string, json::Value> fields_;  // that nobody asked for yet
  std::map<std::string, TensorInfo> stored_;
  std::set<std::string> unasked_;  // lists
};

}  // namespace tessera::io
