#include "tessera/io/row_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <fstream>
#include <string_view>

#include "tessera/base/error.hpp"
#include "tessera/io/internal/binary.hpp"
#include "tessera/io/internal/npz_rows.hpp"
#include "tessera/io/internal/text.hpp"

namespace tessera::io {
namespace {

using internal::fail_at;

enum class Kind { Smtx, Mtx, Npz };

Kind kind_of(const std::string& path) {
  std::string ending = path.substr(std::min(path.rfind('.'), path.size()));
  for (char& c : ending) c = char(std::tolower(static_cast<unsigned char>(c)));
  if (ending == ".smtx") return Kind::Smtx;
  if (ending == ".mtx") return Kind::Mtx;
  if (ending == ".npz") return Kind::Npz;
  throw NotByRows(path +
                  ": rows are read one by one from .smtx, .mtx and .npz files; convert the file "
                  "with tessera convert, or read it as a whole");
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == ','; }

// The words of a range of bytes of a file, read in pieces.
class FileWords {
 public:
  FileWords(const std::string& path, std::int64_t begin, std::int64_t end)
      : path_(path), file_(path, std::ios::binary), next_(begin), end_(end) {
    if (!file_) throw Error(ErrorCode::BadInput, path + ": the file cannot be read");
    file_.seekg(begin);
  }

  [[noreturn]] void fail(const std::string& message) const { fail_at(path_, at_, message); }
  [[noreturn]] void fail_by_rows(const std::string& message) const {
    throw NotByRows(fmt::format("{}: byte {}: {}", path_, at_, message));
  }

  // Moves to the next word of this line and returns it; an empty one at the end of the line.
  std::string_view word() {
    word_.clear();
    while (has_byte() && is_space(peek())) take();
    at_ = next_;
    constexpr std::size_t kLongest = 400;  // digits of a number; memory stays small
    while (has_byte() && !is_space(peek()) && peek() != '\n') {
      if (word_.size() == kLongest) fail("a word of more than 400 bytes is no number");
      word_ += take();
    }
    return word_;
  }

  // Moves behind the end of this line.
  void skip_line() {
    while (has_byte() && take() != '\n') {
    }
  }

  // Moves to the first line from here on that is not blank and no comment. Returns false at the
  // end.
  bool next_line() {
    while (has_byte()) {
      while (has_byte() && is_space(peek())) take();
      at_ = next_;
      if (!has_byte()) return false;
      if (peek() != '\n' && peek() != '%') return true;
      skip_line();
    }
    return false;
  }

  std::int64_t at() const { return at_; }      // offset of the last word
  std::int64_t next() const { return next_; }  // offset of the next byte

  std::int64_t whole(std::string_view what, std::int64_t least, std::int64_t most) {
    const std::string_view text = word();
    std::int64_t value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size() ||
        value < least || value > most)
      fail(fmt::format("{} is {}; it must be a whole number in {}..{}", what,
                       text.empty() ? "missing" : internal::quoted(text), least, most));
    return value;
  }

  double real() {
    const std::string_view text = word();
    double value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size())
      fail(fmt::format("the value is {}; it must be a number",
                       text.empty() ? "missing" : internal::quoted(text)));
    return value;
  }

  bool is_at_end_of_line() {
    while (has_byte() && is_space(peek())) take();
    at_ = next_;
    return !has_byte() || peek() == '\n';
  }

 private:
  bool has_byte() {
    if (position_ < size_) return true;
    if (next_ >= end_) return false;
    const std::int64_t wanted = std::min<std::int64_t>(std::int64_t(piece_.size()), end_ - next_);
    file_.read(piece_.data(), wanted);
    size_ = static_cast<std::size_t>(file_.gcount());
    position_ = 0;
    if (size_ == 0) fail_at(path_, next_, "the file ends here; it has become shorter than it was");
    return true;
  }
  char peek() const { return piece_[position_]; }
  char take() {
    ++next_;
    return piece_[position_++];
  }

  std::string path_;
  std::ifstream file_;
  std::int64_t next_, end_, at_ = 0;
  std::array<char, 1 << 16> piece_{};
  std::size_t position_ = 0, size_ = 0;
  std::string word_;
};

void check_declared(const FileWords& words, std::int64_t bytes, std::int64_t rows,
                    std::int64_t cols) {
  const std::int64_t most = internal::most_lines(bytes);
  if (rows > most || cols > most)
    throw Error(
        ErrorCode::LimitExceeded,
        fmt::format("{} x {} at byte {}: a file of {} bytes may declare {} rows and columns", rows,
                    cols, words.at(), bytes, most));
}

RowIndex index_smtx(FileWords& words, std::int64_t bytes) {
  RowIndex index;
  if (!words.next_line()) words.fail("the file is empty; it must start with three sizes");
  index.rows = words.whole("number of rows", 0, INT64_MAX);
  index.cols = words.whole("number of columns", 0, INT64_MAX);
  const std::int64_t entries = words.whole("number of non-zeros", 0, INT64_MAX);
  check_declared(words, bytes, index.rows, index.cols);
  if (!words.is_at_end_of_line()) words.fail("the three sizes must be alone on their line");
  if (!words.next_line()) words.fail("the file ends before its row offsets");
  for (std::int64_t row = 0; row <= index.rows; ++row) {
    const std::int64_t least = row == 0 ? 0 : index.row_begin.back();
    const std::int64_t most = row == 0 ? 0 : entries;
    index.row_begin.push_back(
        words.whole("row offset", row == index.rows ? std::max(least, entries) : least, most));
  }
  if (!words.is_at_end_of_line()) words.fail("more row offsets than rows, and one");
  words.next_line();
  std::int64_t entry = 0;
  while (!words.is_at_end_of_line()) {
    while (std::ssize(index.byte_begin) <= index.rows &&
           index.row_begin[index.byte_begin.size()] == entry)
      index.byte_begin.push_back(words.at());
    words.word();
    ++entry;
  }
  if (entry != entries)
    words.fail(fmt::format("there are {} column indices; there must be {}", entry, entries));
  index.byte_begin.resize(std::size_t(index.rows) + 1, words.at());
  words.skip_line();
  if (words.next_line()) words.fail("more text after the last line of the matrix; remove it");
  return index;
}

RowIndex index_mtx(FileWords& words, std::int64_t bytes) {
  const auto expect = [&](std::initializer_list<std::string_view> legal) {
    std::string text(words.word());
    for (char& c : text) c = char(std::tolower(static_cast<unsigned char>(c)));
    if (std::find(legal.begin(), legal.end(), text) == legal.end())
      words.fail_by_rows(fmt::format("{} is not read row by row; it must be {}",
                                     internal::quoted(text), fmt::join(legal, ", ")));
    return text;
  };
  RowIndex index;
  expect({"%%matrixmarket"});
  expect({"matrix"});
  expect({"coordinate"});
  index.has_values = expect({"real", "double", "integer", "pattern"}) != "pattern";
  expect({"general"});
  words.skip_line();
  if (!words.next_line()) words.fail("the file ends before its sizes");
  index.rows = words.whole("number of rows", 0, INT64_MAX);
  index.cols = words.whole("number of columns", 0, INT64_MAX);
  const std::int64_t entries = words.whole("number of entries", 0, INT64_MAX);
  check_declared(words, bytes, index.rows, index.cols);
  words.skip_line();
  std::int64_t entry = 0;
  while (words.next_line()) {
    const std::int64_t begin = words.at();
    const std::int64_t row = words.whole("row", 1, index.rows);
    if (row < std::ssize(index.byte_begin))
      words.fail_by_rows(
          fmt::format("row {} follows row {}; entries must be row by row, as tessera convert "
                      "writes them",
                      row, index.byte_begin.size()));
    for (; std::ssize(index.byte_begin) < row; index.byte_begin.push_back(begin))
      index.row_begin.push_back(entry);
    words.skip_line();
    ++entry;
  }
  if (entry != entries)
    words.fail(fmt::format("there are {} entries; there must be {}", entry, entries));
  index.row_begin.resize(std::size_t(index.rows) + 1, entry);
  index.byte_begin.resize(std::size_t(index.rows) + 1, words.next());
  return index;
}

}  // namespace

RowIndex index_rows(const std::string& path) {
  const Kind kind = kind_of(path);
  if (kind == Kind::Npz) return internal::index_npz(path);
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::int64_t bytes = file ? std::int64_t(file.tellg()) : -1;
  if (bytes < 0) throw Error(ErrorCode::BadInput, path + ": the file cannot be read");
  FileWords words(path, 0, bytes);
  return kind == Kind::Smtx ? index_smtx(words, bytes) : index_mtx(words, bytes);
}

template <class T>
sparse::Csr<T> read_rows(const std::string& path, const RowIndex& index, Range rows) {
  if (rows.begin < 0 || rows.end < rows.begin || rows.end > index.rows)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{}: rows {} to {} are asked for; the file has {}", path, rows.begin,
                            rows.end, index.rows));
  const Kind kind = kind_of(path);
  if (kind == Kind::Npz) return internal::read_npz_rows<T>(path, index, rows);
  const bool is_mtx = kind == Kind::Mtx;
  const auto entry_of = [&](std::int64_t row) { return index.row_begin[std::size_t(row)]; };
  sparse::Csr<T> matrix{.rows = rows.size(), .cols = index.cols};
  const std::int64_t entries = entry_of(rows.end) - entry_of(rows.begin);
  matrix.row_begin.reserve(std::size_t(rows.size()) + 1);
  matrix.col.reserve(std::size_t(entries));
  matrix.values.reserve(std::size_t(entries));
  FileWords words(path, index.byte_begin[std::size_t(rows.begin)],
                  index.byte_begin[std::size_t(rows.end)]);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    std::int64_t least = 0;
    for (std::int64_t i = entry_of(row); i < entry_of(row + 1); ++i) {
      if (is_mtx) {
        words.next_line();
        words.whole("row", row + 1, row + 1);
      }
      const std::int64_t base = is_mtx ? 1 : 0;
      const std::int64_t col =
          words.whole("column, which ascends in a row,", least + base, index.cols - 1 + base) -
          base;
      least = col + 1;
      matrix.col.push_back(static_cast<std::int32_t>(col));
      matrix.values.push_back(static_cast<T>(index.has_values ? words.real() : 1.0));
      if (is_mtx && !words.is_at_end_of_line()) words.fail("more than an entry on the line");
    }
    matrix.row_begin.push_back(entry_of(row + 1) - entry_of(rows.begin));
  }
  return matrix;
}

template sparse::Csr<float> read_rows(const std::string&, const RowIndex&, Range);
template sparse::Csr<double> read_rows(const std::string&, const RowIndex&, Range);

}  // namespace tessera::io
