#include "tessera/io/internal/npz_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/input_file.hpp"
#include "tessera/io/array.hpp"
#include "tessera/io/internal/binary.hpp"
#include "tessera/io/internal/npy_head.hpp"
#include "tessera/io/internal/sort_rows.hpp"
#include "tessera/io/internal/text.hpp"
#include "tessera/io/internal/zip.hpp"

namespace tessera::io::internal {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& message,
                       ErrorCode code = ErrorCode::BadInput) {
  throw_fault_of_file(code, fmt::format("{}: {}", path, message));
}

std::string member_of(const ZipArchive& archive, const std::string& key) {
  return archive.has(key) ? key : key + ".npy";
}

Array array_of(ZipArchive& archive, const std::string& path, const std::string& key) {
  return read_npy(archive.read(member_of(archive, key)), fmt::format("{}: {}", path, key));
}

// A whole number of an array, which must be in [least, most].
std::int64_t whole(const std::string& path, const std::string& what, double value,
                   std::int64_t least, std::int64_t most) {
  if (value >= double(least) && value <= double(most) && value == double(std::int64_t(value)))
    return std::int64_t(value);
  fail(path, fmt::format("{} is {}; {}", what, value, legal_whole(least, most)));
}

// The numbers of an array of one dimension, unpacked piece by piece.
class NumberStream {
 public:
  NumberStream(ZipArchive& archive, const std::string& path, const std::string& key)
      : name_(fmt::format("{}: {}", path, key)), member_(archive, member_of(archive, key)) {
    bytes_ = member_.next(std::size_t(kLongestNpyHead));
    head_ = read_npy_head(bytes_, name_);
    if (head_.shape.size() != 1 || head_.encoding.type == ElementType::Text)
      fail(name_, "it must be an array of numbers with 1 dimension");
    count_ = count_elements(head_.shape, most_elements(archive, key), name_, 0);
    bytes_.erase(0, std::size_t(head_.data_begin));
    offset_ = head_.data_begin;
  }

  std::int64_t count() const { return count_; }

  // Passes the next numbers over.
  void skip(std::int64_t count) {
    const std::int64_t end = offset_ + count * head_.element_bytes;
    while (offset_ < end) {
      fill();
      drop(std::min<std::int64_t>(end - offset_, std::int64_t(bytes_.size())));
    }
  }

  // Calls visit(number) for the next numbers.
  template <class Visit>
  void take(std::int64_t count, const Visit& visit) {
    while (count > 0) {
      fill();
      const std::int64_t there = std::min(count, std::int64_t(bytes_.size()) / head_.element_bytes);
      if (there == 0) cut_short();
      for (const double value : decode_numbers(bytes_, there, head_.encoding, name_, offset_))
        visit(value);
      drop(there * head_.element_bytes);
      count -= there;
    }
  }

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 18;

  // Neither the array nor the archive is trusted to say how long it is: callers reserve memory.
  std::int64_t most_elements(const ZipArchive& archive, const std::string& key) const {
    constexpr std::int64_t kMostExpansion = 1032;  // of deflate
    const std::int64_t bytes = std::min(archive.declared_bytes(member_of(archive, key)),
                                        kMostExpansion * archive.packed_bytes());
    return std::max<std::int64_t>(bytes - head_.data_begin, 0) / head_.element_bytes;
  }

  [[noreturn]] void cut_short() const { fail(name_, "the array is cut short"); }
  void fill() {
    if (bytes_.size() < 8) bytes_ += member_.next(kPiece);
    if (bytes_.empty()) cut_short();
  }
  void drop(std::int64_t bytes) {
    bytes_.erase(0, std::size_t(bytes));
    offset_ += bytes;
  }

  std::string name_;
  Unpacking member_;
  std::string bytes_;  // unpacked and not yet taken
  NpyHead head_;
  std::int64_t count_ = 0, offset_ = 0;
};

}  // namespace

RowIndex index_npz(const std::string& path) {
  const InputFile file(path);
  ZipArchive archive(file, path);
  const Array format = array_of(archive, path, "format");
  const std::string kind = format.text.size() == 1 ? format.text[0] : "";
  if (kind != "csr")
    throw NotByRows(fmt::format("{}: format is {}; rows are read one by one from csr", path,
                                internal::quoted(kind)));
  const Array shape = array_of(archive, path, "shape"), begin = array_of(archive, path, "indptr");
  if (shape.values.size() != 2 || begin.shape.size() != 1 || begin.values.empty())
    fail(path, "shape must be two numbers, and indptr an array of numbers with 1 dimension");
  const std::int64_t entries = NumberStream(archive, path, "indices").count();
  if (NumberStream(archive, path, "data").count() != entries)
    fail(path, "data and indices must have as many entries");
  RowIndex index{.has_values = true};
  index.rows = whole(path, "shape[0]", shape.values[0], 0, std::ssize(begin.values) - 1);
  // Row offsets take 8 bytes of the file for each row at most, so the limit of other readers on
  // columns is that for the bytes of entries, which were not unpacked.
  index.cols = whole(path, "shape[1]", shape.values[1], 0, most_lines(8 * (entries + index.rows)));
  if (std::ssize(begin.values) != index.rows + 1)
    fail(path, fmt::format("indptr has {} entries; {} rows need {}", begin.values.size(),
                           index.rows, index.rows + 1));
  index.row_begin.reserve(begin.values.size());
  for (const double value : begin.values)
    index.row_begin.push_back(whole(path, "an entry of indptr, which ascends from 0", value,
                                    index.row_begin.empty() ? 0 : index.row_begin.back(),
                                    index.row_begin.empty() ? 0 : entries));
  if (index.row_begin.back() != entries)
    fail(path, fmt::format("indptr must end with {}, the number of entries", entries));
  return index;
}

template <class T>
sparse::Csr<T> read_npz_rows(const std::string& path, const RowIndex& index, Range rows) {
  const std::int64_t first = index.row_begin[std::size_t(rows.begin)];
  const std::int64_t count = index.row_begin[std::size_t(rows.end)] - first;
  const InputFile file(path);
  ZipArchive archive(file, path);
  sparse::Csr<T> matrix{.rows = rows.size(), .cols = index.cols};
  matrix.col.reserve(std::size_t(count));
  matrix.values.reserve(std::size_t(count));
  {
    NumberStream columns(archive, path, "indices");
    columns.skip(first);
    columns.take(count, [&](double column) {
      matrix.col.push_back(std::int32_t(whole(path, "a column", column, 0, index.cols - 1)));
    });
  }
  NumberStream values(archive, path, "data");
  values.skip(first);
  values.take(count, [&](double value) {
    if (std::is_same_v<T, float> && !fits(value, Precision::Float))
      fail(path, fmt::format("a value is {}; {}", value, kBeyondFloats));
    matrix.values.push_back(static_cast<T>(value));
  });
  for (std::int64_t r = rows.begin; r < rows.end; ++r)
    matrix.row_begin.push_back(index.row_begin[std::size_t(r) + 1] - first);
  // SciPy need not sort the entries of a row.
  if (const auto twins = sort_entries(matrix))
    fail(path,
         fmt::format("row {}, column {}, counted from 0, is given twice; drop one or add them "
                     "up",
                     rows.begin + twins->row, twins->col));
  return matrix;
}

template sparse::Csr<float> read_npz_rows(const std::string&, const RowIndex&, Range);
template sparse::Csr<double> read_npz_rows(const std::string&, const RowIndex&, Range);

}  // namespace tessera::io::internal
