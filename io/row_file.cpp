#include "tessera/io/row_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <type_traits>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/input_file.hpp"
#include "tessera/io/internal/binary.hpp"
#include "tessera/io/internal/npz_rows.hpp"
#include "tessera/io/internal/sort_rows.hpp"
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

// The words of a range of bytes of a file, read in pieces. White space separates words, and commas
// do in .smtx files.
class FileWords {
 public:
  explicit FileWords(const std::string& path)
      : path_(path), commas_too_(kind_of(path) == Kind::Smtx), file_(path), end_(file_.bytes()) {}

  FileWords(const std::string& path, Range bytes) : FileWords(path) {
    next_ = bytes.begin;
    end_ = bytes.end;
  }

  std::int64_t bytes_of_file() const { return file_.bytes(); }

  [[noreturn]] void fail(const std::string& message, ErrorCode code = ErrorCode::BadInput) const {
    throw_fault_of_file(code, fmt::format("{}: byte {}: {}", path_, at_, message));
  }
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
    if (!internal::parse_whole(text, value) || value < least || value > most)
      fail(fmt::format("{} is {}; {}", what, text.empty() ? "missing" : internal::quoted(text),
                       internal::legal_whole(least, most)));
    return value;
  }

  double real(Precision precision) {
    const std::string_view text = word();
    double value = 0;
    if (internal::parse_real(text, value, precision)) return value;
    if (precision == Precision::Float && internal::parse_real(text, value))
      fail(fmt::format("the value is {}; {}", internal::quoted(text), internal::kBeyondFloats));
    fail(fmt::format("the value is {}; it must be a number",
                     text.empty() ? "missing" : internal::quoted(text)));
  }

  // Returns the value of an entry.
  double value(const RowIndex& index, Precision precision) {
    if (!index.has_values) return 1;
    return index.has_whole_values
               ? double(whole("value", -internal::kMostExact, internal::kMostExact))
               : real(precision);
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
    size_ = static_cast<std::size_t>(file_.read(next_, wanted, piece_.data()));
    position_ = 0;
    if (size_ == 0) fail_at(path_, next_, "the file ends here; it has become shorter than it was");
    return true;
  }
  bool is_space(char c) const {
    return (c != '\n' && internal::is_blank(c)) || (commas_too_ && c == ',');
  }
  char peek() const { return piece_[position_]; }
  char take() {
    ++next_;
    return piece_[position_++];
  }

  std::string path_;
  bool commas_too_;
  InputFile file_;
  std::int64_t next_ = 0, end_, at_ = 0;
  std::array<char, 1 << 16> piece_{};
  std::size_t position_ = 0, size_ = 0;
  std::string word_;
};

void check_declared(const FileWords& words, std::int64_t rows, std::int64_t cols) {
  const std::int64_t bytes = words.bytes_of_file(), most = internal::most_lines(bytes);
  if (rows > most || cols > most)
    words.fail(fmt::format("{} rows and {} columns; a file of {} bytes may declare at most {} of "
                           "each",
                           rows, cols, bytes, most),
               ErrorCode::LimitExceeded);
}

RowIndex index_smtx(FileWords& words) {
  RowIndex index;
  if (!words.next_line()) words.fail("the file is empty; it must start with three sizes");
  index.rows = words.whole("number of rows", 0, INT64_MAX);
  index.cols = words.whole("number of columns", 0, INT64_MAX);
  const std::int64_t entries = words.whole("number of non-zeros", 0, INT64_MAX);
  check_declared(words, index.rows, index.cols);
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

RowIndex index_mtx(FileWords& words) {
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
  const std::string field = expect({"real", "double", "integer", "pattern"});
  index.has_values = field != "pattern";
  index.has_whole_values = field == "integer";
  expect({"general"});
  words.skip_line();
  if (!words.next_line()) words.fail("the file ends before its sizes");
  index.rows = words.whole("number of rows", 0, INT64_MAX);
  index.cols = words.whole("number of columns", 0, INT64_MAX);
  const std::int64_t entries = words.whole("number of entries", 0, INT64_MAX);
  check_declared(words, index.rows, index.cols);
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

// Read the columns and values of a matrix of which the row pointers are known.
template <class T>
void read_smtx_rows(FileWords& words, sparse::Csr<T>& matrix) {
  for (std::size_t row = 0; row + 1 < matrix.row_begin.size(); ++row) {
    std::int64_t least = 0;
    for (std::int64_t i = matrix.row_begin[row]; i < matrix.row_begin[row + 1]; ++i) {
      const std::int64_t col =
          words.whole("column, which ascends in a row,", least, matrix.cols - 1);
      least = col + 1;
      matrix.col.push_back(static_cast<std::int32_t>(col));
    }
  }
  matrix.values.assign(matrix.col.size(), T(1));
}

template <class T>
void read_mtx_rows(FileWords& words, const RowIndex& index, Range rows, sparse::Csr<T>& matrix) {
  constexpr Precision kPrecision = std::is_same_v<T, float> ? Precision::Float : Precision::Double;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const auto own = std::size_t(row - rows.begin);
    for (std::int64_t i = matrix.row_begin[own]; i < matrix.row_begin[own + 1]; ++i) {
      words.next_line();
      words.whole("row", row + 1, row + 1);
      matrix.col.push_back(static_cast<std::int32_t>(words.whole("column", 1, index.cols) - 1));
      matrix.values.push_back(static_cast<T>(words.value(index, kPrecision)));
      if (!words.is_at_end_of_line()) words.fail("more than an entry on the line");
    }
  }
}

}  // namespace

RowIndex index_rows(const std::string& path) {
  const Kind kind = kind_of(path);
  if (kind == Kind::Npz) return internal::index_npz(path);
  FileWords words(path);
  return kind == Kind::Smtx ? index_smtx(words) : index_mtx(words);
}

template <class T>
sparse::Csr<T> read_rows(const std::string& path, const RowIndex& index, Range rows) {
  if (rows.begin < 0 || rows.end < rows.begin || rows.end > index.rows)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{}: rows {} to {} are asked for; the file has {}", path, rows.begin,
                            rows.end, index.rows));
  const Kind kind = kind_of(path);
  if (kind == Kind::Npz) return internal::read_npz_rows<T>(path, index, rows);
  sparse::Csr<T> matrix{.rows = rows.size(), .cols = index.cols};
  const std::int64_t first = index.row_begin[std::size_t(rows.begin)];
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    matrix.row_begin.push_back(index.row_begin[std::size_t(row) + 1] - first);
  matrix.col.reserve(std::size_t(matrix.row_begin.back()));
  matrix.values.reserve(std::size_t(matrix.row_begin.back()));
  FileWords words(
      path, {index.byte_begin[std::size_t(rows.begin)], index.byte_begin[std::size_t(rows.end)]});
  if (kind == Kind::Smtx) {
    read_smtx_rows(words, matrix);
    return matrix;
  }
  read_mtx_rows(words, index, rows, matrix);
  if (const auto twins = internal::sort_entries(matrix))
    throw Error(ErrorCode::BadInput,
                fmt::format("{}: row {}, column {} is given twice; drop one or add them up", path,
                            rows.begin + twins->row + 1, twins->col + 1));
  return matrix;
}

template sparse::Csr<float> read_rows(const std::string&, const RowIndex&, Range);
template sparse::Csr<double> read_rows(const std::string&, const RowIndex&, Range);

}  // namespace tessera::io
