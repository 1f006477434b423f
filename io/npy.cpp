#include <fmt/format.h>

#include <charconv>
#include <type_traits>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/io/array.hpp"
#include "tessera/io/internal/binary.hpp"
#include "tessera/io/internal/npy_head.hpp"
#include "tessera/io/internal/text.hpp"

namespace tessera::io {
namespace {

using internal::Encoding;
using internal::fail_at;

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr std::size_t kLongestArrayHeader =
    65536;                                 // the header of a plain array has about 100 bytes
constexpr std::int64_t kMostTexts = 1024;  // a text takes up to 32 times its bytes in memory

struct ArrayHeader {
  std::string descr;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

// Parses the Python dict literal of a header. Only three keys are legal.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, std::string_view name, std::int64_t offset)
      : text_(text), name_(name), offset_(offset) {}

  ArrayHeader read() {
    ArrayHeader header;
    bool seen[3] = {};
    expect('{');
    while (!next_is('}')) {
      const std::string key = quoted_text();
      expect(':');
      if (key == "descr")
        once(seen[0], key), header.descr = descr();
      else if (key == "fortran_order")
        once(seen[1], key), header.fortran_order = truth();
      else if (key == "shape")
        once(seen[2], key), header.shape = tuple();
      else
        fail(
            fmt::format("key {} is not one of descr, fortran_order, shape", internal::quoted(key)));
      if (!next_is('}')) expect(',');
    }
    if (!seen[0] || !seen[1] || !seen[2])
      fail("the header must have descr, fortran_order and shape");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    fail_at(name_, offset_ + std::int64_t(at_), message);
  }
  void once(bool& seen, const std::string& key) const {
    if (seen) fail(key + " is given twice");
    seen = true;
  }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool next_is(char c) {
    skip_blanks();
    return at_ < text_.size() && text_[at_] == c;
  }
  void expect(char c) {
    if (!next_is(c)) fail(fmt::format("'{}' is missing in the header", c));
    ++at_;
  }
  std::string quoted_text() {
    skip_blanks();
    const char quote = next_is('"') ? '"' : '\'';
    expect(quote);
    const std::size_t end = text_.find(quote, at_);
    if (end == text_.npos) fail("a quote is not closed in the header");
    const std::string text(text_.substr(at_, end - at_));
    at_ = end + 1;
    return text;
  }
  std::string descr() {
    if (next_is('['))
      fail("elements are records of several fields; only plain numbers can be read");
    return quoted_text();
  }
  bool truth() {
    skip_blanks();
    for (const std::string_view word : {"True", "False"})
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return word == "True";
      }
    fail("fortran_order must be True or False");
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> sides;
    expect('(');
    while (!next_is(')')) {
      std::int64_t side = 0;
      const char* const begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), side);
      if (error != std::errc{} || sides.size() == 32)
        fail("shape must have at most 32 whole numbers");
      at_ += std::size_t(end - begin);
      sides.push_back(side);
      if (!next_is(')')) expect(',');
    }
    ++at_;
    return sides;
  }

  std::string_view text_, name_;
  std::int64_t offset_;
  std::size_t at_ = 0;
};

// The type of an element, as "descr" gives it.
struct Element {
  Encoding encoding;
  std::int64_t bytes = 0;
  bool is_wide = false;  // text of four bytes a letter
};

Element parse_descr(const std::string& descr, std::string_view name) {
  constexpr std::pair<std::string_view, ElementType> kNumbers[] = {
      {"f8", ElementType::F64}, {"f4", ElementType::F32}, {"f2", ElementType::F16},
      {"i8", ElementType::I64}, {"i4", ElementType::I32}, {"i2", ElementType::I16},
      {"i1", ElementType::I8},  {"u8", ElementType::U64}, {"u4", ElementType::U32},
      {"u2", ElementType::U16}, {"u1", ElementType::U8},  {"b1", ElementType::Bool}};
  const bool has_order =
      !descr.empty() && std::string_view("<>|=").find(descr[0]) != std::string_view::npos;
  const bool big_endian = has_order && descr[0] == '>';
  const std::string_view kind = std::string_view(descr).substr(has_order ? 1 : 0);
  for (const auto& [code, type] : kNumbers)
    if (kind == code) return {{type, big_endian}, bytes_of(type), false};
  std::int64_t letters = 0;
  const auto [end, error] =
      std::from_chars(kind.data() + !kind.empty(), kind.data() + kind.size(), letters);
  if (kind.size() > 1 && (kind[0] == 'S' || kind[0] == 'U') && error == std::errc{} &&
      end == kind.data() + kind.size() && 1 <= letters && letters <= 1024)
    return {
        {ElementType::Text, big_endian}, kind[0] == 'S' ? letters : 4 * letters, kind[0] == 'U'};
  const char* why = kind.substr(0, 1) == "O"   ? "Python objects, which are never loaded"
                    : kind.substr(0, 1) == "c" ? "complex numbers"
                                               : "of an unsupported type";
  fail_at(
      name, 10,
      fmt::format(
          "elements {} are {}; legal types are f2, f4, f8, i1 to i8, u1 to u8, b1 and S or U text",
          internal::quoted(descr), why));
}

// Returns the code of letter i of U text, whose letters take four bytes each.
std::uint32_t code_at(std::string_view bytes, std::size_t i, bool big_endian) {
  std::uint32_t code = 0;
  for (std::size_t k = 0; k < 4; ++k)
    code = code << 8 | static_cast<unsigned char>(bytes[4 * i + (big_endian ? k : 3 - k)]);
  return code;
}

// Returns the letters up to the first zero. `offset` is the offset of the bytes in the file.
std::string text_at(std::string_view bytes, const Element& element, std::string_view name,
                    std::int64_t offset) {
  const std::string_view letters = bytes.substr(0, std::size_t(element.bytes));
  if (!element.is_wide) return std::string(letters.substr(0, letters.find('\0')));
  std::string text;
  for (std::size_t i = 0; i < letters.size() / 4; ++i) {
    const std::uint32_t code = code_at(letters, i, element.encoding.big_endian);
    if (code == 0) break;
    if (code > 127)
      fail_at(name, offset + std::int64_t(4 * i),
              fmt::format("letter U+{:04X} is not ASCII, which text must be", code));
    text += char(code);
  }
  return text;
}

// Returns the elements of a text array.
std::vector<std::string> texts(std::string_view data, std::int64_t count, const Element& element,
                               std::string_view name, std::int64_t offset) {
  if (count > kMostTexts)
    fail_at(name, offset,
            fmt::format("{} elements of text; at most {} are read", count, kMostTexts));
  std::vector<std::string> result;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t begin = i * element.bytes;
    result.push_back(text_at(data.substr(std::size_t(begin)), element, name, offset + begin));
  }
  return result;
}

// Reorders the elements of an array from Fortran order (first index fastest) to C order (last index
// fastest).
std::vector<double> to_row_major(const std::vector<double>& values,
                                 const std::vector<std::int64_t>& shape) {
  std::vector<double> result(values.size());
  std::vector<std::int64_t> at(shape.size(), 0);
  for (const double value : values) {
    std::int64_t place = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) place = place * shape[d] + at[d];
    result[std::size_t(place)] = value;
    for (std::size_t d = 0; d < shape.size() && ++at[d] == shape[d]; ++d) at[d] = 0;
  }
  return result;
}

// Returns the range of the header's text in the file.
Range header_range(std::string_view bytes, std::string_view name) {
  if (bytes.size() < 10 || bytes.substr(0, 6) != kMagic)
    fail_at(name, 0, "this is not a .npy array, which must begin with \\x93NUMPY and a version");
  const int version = bytes[6];
  if (version < 1 || version > 3)
    fail_at(name, 6,
            fmt::format("format version {} is not known; legal versions are 1 to 3", version));
  const std::size_t begin = version == 1 ? 10 : 12;
  std::size_t length = 0;
  for (std::size_t i = begin; i-- > 8;)
    length = length << 8 | (i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0u);
  if (length > kLongestArrayHeader || begin + length > bytes.size())
    fail_at(name, 8,
            fmt::format(
                "the header claims to have {} bytes; the file has {} in all, and the limit is {}",
                length, bytes.size(), kLongestArrayHeader));
  return {std::int64_t(begin), std::int64_t(begin + length)};
}

template <class T>
const char* descr_of() {
  if constexpr (std::is_same_v<T, float>) return "<f4";
  if constexpr (std::is_same_v<T, double>) return "<f8";
  if constexpr (std::is_same_v<T, Half>) return "<f2";
  if constexpr (std::is_same_v<T, std::int32_t>) return "<i4";
  if constexpr (std::is_same_v<T, std::int64_t>) return "<i8";
}

std::string npy_header(const char* descr, const std::string& shape) {
  std::string dict =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr, shape);
  // The data begin at a multiple of 64 bytes, as NumPy's do.
  dict.append(63 - (10 + dict.size()) % 64, ' ');
  dict += '\n';
  std::string out(kMagic);
  out.append("\x01\x00", 2);
  internal::append_bytes(out, std::uint16_t(dict.size()));
  return out + dict;
}

}  // namespace

internal::NpyHead internal::read_npy_head(std::string_view bytes, std::string_view name) {
  const Range place = header_range(bytes, name);
  ArrayHeader header =
      HeaderReader(bytes.substr(std::size_t(place.begin), std::size_t(place.size())), name,
                   place.begin)
          .read();
  const Element element = parse_descr(header.descr, name);
  return {element.encoding, element.bytes, header.fortran_order, std::move(header.shape),
          place.end};
}

Array read_npy(std::string_view bytes, std::string_view name) {
  const Range place = header_range(bytes, name);
  const ArrayHeader header =
      HeaderReader(bytes.substr(std::size_t(place.begin), std::size_t(place.size())), name,
                   place.begin)
          .read();
  const Element element = parse_descr(header.descr, name);
  const std::string_view data = bytes.substr(std::size_t(place.end));
  const std::int64_t there = std::int64_t(data.size()) / element.bytes;
  const std::int64_t count = internal::count_elements(header.shape, there, name, place.begin);
  if (count * element.bytes != std::int64_t(data.size()))
    fail_at(name, place.end,
            fmt::format("{} bytes of data follow; {} elements of {} bytes need {}", data.size(),
                        count, element.bytes, count * element.bytes));
  Array array{element.encoding.type, header.shape, {}, {}};
  if (array.type == ElementType::Text) {
    array.text = texts(data, count, element, name, place.end);
    return array;
  }
  array.values = internal::decode_numbers(data, count, element.encoding, name, place.end);
  if (header.fortran_order) array.values = to_row_major(array.values, array.shape);
  return array;
}

template <class T>
std::string write_npy(MatrixView<const T> matrix) {
  std::string out = npy_header(descr_of<T>(), fmt::format("({}, {})", matrix.rows, matrix.cols));
  for (std::int64_t r = 0; r < matrix.rows; ++r)
    for (std::int64_t c = 0; c < matrix.cols; ++c) internal::append_bytes(out, matrix(r, c));
  return out;
}

template <class T>
std::string write_npy(const std::vector<T>& line) {
  std::string out = npy_header(descr_of<T>(), fmt::format("({},)", line.size()));
  for (const T value : line) internal::append_bytes(out, value);
  return out;
}

// NumPy has no bfloat16; float holds each of its numbers.
template <>
std::string write_npy(MatrixView<const BFloat16> matrix) {
  std::string out =
      npy_header(descr_of<float>(), fmt::format("({}, {})", matrix.rows, matrix.cols));
  for (std::int64_t r = 0; r < matrix.rows; ++r)
    for (std::int64_t c = 0; c < matrix.cols; ++c) internal::append_bytes(out, float(matrix(r, c)));
  return out;
}

template std::string write_npy(MatrixView<const float>);
template std::string write_npy(MatrixView<const double>);
template std::string write_npy(MatrixView<const Half>);
template std::string write_npy(const std::vector<float>&);
template std::string write_npy(const std::vector<double>&);
template std::string write_npy(const std::vector<Half>&);
template std::string write_npy(const std::vector<std::int32_t>&);
template std::string write_npy(const std::vector<std::int64_t>&);

}  // namespace tessera::io
