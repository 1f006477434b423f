#include "tessera/io/internal/mtx_header.hpp"

#include <fmt/format.h>

#include <array>
#include <string>

#include "tessera/base/error.hpp"

namespace tessera::io::internal {

void refuse_extra(const Lines& lines, std::string_view rest, std::string_view after) {
  const std::string_view extra = take_word(rest);
  if (!extra.empty()) lines.fail(fmt::format("{} follows {}; remove it", quoted(extra), after));
}

namespace {

std::string lower(std::string_view word) {
  std::string result(word);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

MtxField parse_field(const Lines& lines, std::string_view word) {
  const std::string field = lower(word);
  if (field == "real" || field == "double") return MtxField::Real;
  if (field == "integer") return MtxField::Integer;
  if (field == "pattern") return MtxField::Pattern;
  if (field == "complex")
    lines.fail(
        "the values are complex; only real, integer and pattern files can be read (split "
        "real and imaginary parts into two files)");
  lines.fail(fmt::format("the field is {}; it must be real, integer or pattern", quoted(word)));
}

MtxSymmetry parse_symmetry(const Lines& lines, std::string_view word) {
  const std::string symmetry = lower(word);
  if (symmetry == "general") return MtxSymmetry::General;
  if (symmetry == "symmetric") return MtxSymmetry::Symmetric;
  if (symmetry == "skew-symmetric") return MtxSymmetry::Skew;
  if (symmetry == "hermitian")
    lines.fail(
        "the matrix is hermitian, which only complex values can be; only general, symmetric "
        "and skew-symmetric files can be read");
  lines.fail(fmt::format("the symmetry is {}; it must be general, symmetric or skew-symmetric",
                         quoted(word)));
}

constexpr std::string_view kExpected =
    "the first line must be: %%MatrixMarket matrix coordinate real general";

void check_first_word(const Lines& lines, std::string_view word) {
  if (lower(word) != "%%matrixmarket")
    lines.fail(fmt::format("the file starts with {}; {}", quoted(word), kExpected));
}

MtxHeader read_banner(Lines& lines) {
  if (!lines.next()) lines.fail(fmt::format("the file is empty; {}", kExpected));
  std::string_view rest = lines.line();
  std::array<std::string_view, 5> words;
  for (std::string_view& word : words) word = take_word(rest);
  check_first_word(lines, words[0]);
  if (lower(words[1]) != "matrix")
    lines.fail(fmt::format("the object is {}; only \"matrix\" can be read", quoted(words[1])));
  MtxHeader header;
  const std::string format = lower(words[2]);
  if (format != "coordinate" && format != "array")
    lines.fail(fmt::format("the format is {}; it must be coordinate or array", quoted(words[2])));
  header.is_array = format == "array";
  header.field = parse_field(lines, words[3]);
  header.symmetry = parse_symmetry(lines, words[4]);
  refuse_extra(lines, rest, "the banner");
  if (header.field == MtxField::Pattern &&
      (header.is_array || header.symmetry == MtxSymmetry::Skew))
    lines.fail("a pattern has no values, so it cannot be an array or skew-symmetric");
  return header;
}

// Returns the number of entries in an array file: all, or one triangle with or without the
// diagonal.
std::int64_t array_entries(const MtxHeader& header) {
  const std::int64_t n = header.rows;
  switch (header.symmetry) {
    case MtxSymmetry::General:
      return header.rows * header.cols;
    case MtxSymmetry::Symmetric:
      return n * (n + 1) / 2;
    case MtxSymmetry::Skew:
      return n * (n - 1) / 2;
  }
  return 0;
}

// Fails if the rest of the file is too short for the declared entries, so that no memory is
// reserved for them.
void check_entries_against_file(const Lines& lines, const MtxHeader& header) {
  const bool has_value = header.field != MtxField::Pattern;
  const std::int64_t least_bytes = (header.is_array ? 0 : 4) + (has_value ? 2 : 0);
  // The last line may have no newline.
  const std::int64_t most = (lines.bytes_left() + 1) / least_bytes;
  if (header.entries > most)
    lines.fail(
        fmt::format("{} entries are declared; the {} bytes that follow hold {} at most: the "
                    "file was cut off or the number is wrong",
                    header.entries, lines.bytes_left(), most));
}

void read_sizes(Lines& lines, MtxHeader& header) {
  if (!lines.next_with_content()) lines.fail("the file ends before its line of sizes");
  std::string_view rest = lines.line();
  const auto take = [&](std::string_view what) {
    return whole_number(lines, take_word(rest), {what, 0, INT64_MAX});
  };
  header.rows = take("number of rows");
  header.cols = take("number of columns");
  if (!header.is_array) header.entries = take("number of entries");
  refuse_extra(lines, rest, "the sizes");
  check_sizes_against_file(lines, header.rows, header.cols);
  if (header.symmetry != MtxSymmetry::General && header.rows != header.cols)
    lines.fail(fmt::format("{} rows and {} columns; a symmetric matrix must be square", header.rows,
                           header.cols));
  if (header.is_array) header.entries = array_entries(header);
  if (header.entries > header.rows * header.cols)
    lines.fail(fmt::format("{} entries do not fit in {} rows and {} columns; the most is {}",
                           header.entries, header.rows, header.cols, header.rows * header.cols));
  check_entries_against_file(lines, header);
}

// Returns whether the next lines of a part of a text have the line of sizes.
bool has_sizes(Lines ahead) { return ahead.next_with_content(); }

}  // namespace

MtxHeader read_mtx_header(const TextSource& text, std::string_view name) {
  constexpr std::int64_t kPage = 4096;
  std::string buffer;
  for (std::int64_t count = kPage;; count *= 4) {
    const std::string_view piece = text.piece(0, count, buffer);
    const bool is_all = static_cast<std::int64_t>(piece.size()) < count;
    const std::string_view start =
        is_all ? piece : piece.substr(0, piece.rfind('\n') + 1);  // npos + 1 is 0
    if (start.empty() && !is_all) {  // the first line is longer than the piece
      std::string_view line = piece;
      check_first_word(Lines(piece, name), take_word(line));
      continue;
    }
    Lines lines(start, name, 0, text.bytes() - static_cast<std::int64_t>(start.size()));
    MtxHeader header = read_banner(lines);
    if (!is_all && !has_sizes(lines)) continue;
    read_sizes(lines, header);
    header.begin = text.bytes() - lines.bytes_left();
    header.lines = lines.number();
    return header;
  }
}

}  // namespace tessera::io::internal
