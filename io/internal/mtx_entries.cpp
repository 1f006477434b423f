#include "tessera/io/internal/mtx_entries.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/io/internal/mtx_line.hpp"

namespace tessera::io::internal {
namespace {

// With its entries, a piece takes about three times its text: it fits the second-level cache of
// most processors, and is large enough to be read from a disk in one go.
constexpr std::int64_t kPieceBytes = 1 << 19;

// More threads parse faster than one thread takes the entries.
constexpr int kMostThreads = 8;

constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();

}  // namespace

// Whole lines of the text, and the entries on them.
struct MtxEntries::Piece {
  std::string buffer;
  std::string_view text;
  std::vector<std::int32_t> row, col, line;
  std::vector<double> value;
  std::int64_t lines = 0, entries = 0;  // mirror images do not count
  bool is_wrong = false;

  void clear() {
    row.clear(), col.clear(), line.clear(), value.clear();
    lines = entries = 0;
    is_wrong = false;
  }
  void add(std::int32_t r, std::int32_t c, double v) {
    row.push_back(r);
    col.push_back(c);
    value.push_back(v);
    line.push_back(static_cast<std::int32_t>(lines));
  }
  void add_value(double v) {
    value.push_back(v);
    line.push_back(static_cast<std::int32_t>(lines));
  }
  void add(const MtxEntry& entry, const MtxHeader& header) {
    ++entries;
    if (header.is_array) return add_value(entry.value);
    add(entry.row, entry.col, entry.value);
    if (header.symmetry != MtxSymmetry::General && entry.row != entry.col)
      add(entry.col, entry.row, header.symmetry == MtxSymmetry::Skew ? -entry.value : entry.value);
  }
};

// The place of the next value of an array, which is stored column by column. A symmetric file has
// only those on and below the diagonal, a skew-symmetric file only those below it.
class MtxEntries::ArrayPlace {
 public:
  explicit ArrayPlace(const MtxHeader& header) : header_(header) { begin_column(0); }

  // Adds the values of a piece that are not zero to a piece of places.
  void add(const Piece& values, Piece& to) {
    for (std::size_t i = 0; i < values.value.size(); ++i) {
      to.lines = values.line[i];
      if (values.value[i] != 0)
        add_entry(
            {static_cast<std::int32_t>(row_), static_cast<std::int32_t>(col_), values.value[i]},
            to);
      if (++row_ == header_.rows) begin_column(col_ + 1);
    }
  }

 private:
  void add_entry(const MtxEntry& entry, Piece& to) const {
    MtxHeader coordinates = header_;
    coordinates.is_array = false;
    to.add(entry, coordinates);
  }
  void begin_column(std::int64_t col) {
    col_ = col;
    row_ = header_.symmetry == MtxSymmetry::General     ? 0
           : header_.symmetry == MtxSymmetry::Symmetric ? col
                                                        : col + 1;
  }

  const MtxHeader& header_;
  std::int64_t row_ = 0, col_ = 0;
};

MtxEntries::MtxEntries(const TextSource& text, std::string_view name, Precision precision)
    : text_(text), name_(name), header_(read_mtx_header(text, name)) {
  header_.precision = precision;
  const std::int64_t pieces = ceil_div(text.bytes() - header_.begin, kPieceBytes);
  executor_ = make_executor(pieces > 1 ? 0 : 1);
  if (executor_->threads() > kMostThreads) executor_ = make_executor(kMostThreads);
}

MtxEntries::~MtxEntries() = default;

// Lines that are not in the usual form are read once more, by the reader that names their fault.
// While the number of lines before the piece is unknown, a fault only marks the piece.
void MtxEntries::parse(Piece& piece, std::int64_t lines_before, std::int64_t most) const {
  piece.clear();
  const char* at = piece.text.data();
  const char* const end = at + piece.text.size();
  MtxEntry entry;
  while (at < end) {
    if (piece.entries < most && take_plain_entry(at, end, header_, entry)) {
      ++piece.lines;
      piece.add(entry, header_);
      continue;
    }
    const void* const newline = std::memchr(at, '\n', static_cast<std::size_t>(end - at));
    const char* const next = newline == nullptr ? end : static_cast<const char*>(newline) + 1;
    Lines line({at, static_cast<std::size_t>(next - at)}, name_, lines_before + piece.lines);
    at = next;
    ++piece.lines;
    if (!line.next_with_content()) continue;
    if (piece.entries == most)
      line.fail(
          fmt::format("more text after the last of {} entries; remove it or correct the "
                      "number of entries",
                      header_.entries));
    piece.add(read_mtx_entry(line, header_), header_);
  }
}

void MtxEntries::pass_on(const Piece& piece, std::int64_t lines_before, ArrayPlace& place,
                         const std::function<void(const MtxBatch&)>& take) const {
  if (!header_.is_array) return take({piece.row, piece.col, piece.value, piece.line, lines_before});
  Piece places;
  place.add(piece, places);
  take({places.row, places.col, places.value, places.line, lines_before});
}

void MtxEntries::fail_at_end(std::int64_t lines, std::int64_t entries) const {
  Lines({}, name_, lines)
      .fail(fmt::format("the file ends after {} of {} entries", entries, header_.entries));
}

void MtxEntries::read(const std::function<void(const MtxBatch&)>& take) {
  const std::int64_t begin = header_.begin;
  const std::int64_t count = ceil_div(text_.bytes() - begin, kPieceBytes);
  pieces_.resize(static_cast<std::size_t>(
      std::min<std::int64_t>(count, 2 * std::int64_t{executor_->threads()})));
  std::int64_t lines = header_.lines, entries = 0;
  ArrayPlace place(header_);
  for (std::int64_t first = 0; first < count; first += std::ssize(pieces_)) {
    const std::int64_t some = std::min<std::int64_t>(std::ssize(pieces_), count - first);
    executor_->for_each(some, [&](std::int64_t i) {
      Piece& piece = pieces_[static_cast<std::size_t>(i)];
      const std::int64_t from = begin + (first + i) * kPieceBytes;
      const std::int64_t to = std::min(from + kPieceBytes, text_.bytes());
      piece.text = lines_between(text_, begin, from, to, piece.buffer);
      try {
        parse(piece, 0, kAny);
      } catch (const Error&) {
        piece.is_wrong = true;  // said below, with the number of the line
      }
    });
    for (std::int64_t i = 0; i < some; ++i) {
      Piece& piece = pieces_[static_cast<std::size_t>(i)];
      if (piece.is_wrong || piece.entries > header_.entries - entries)
        parse(piece, lines, header_.entries - entries);
      pass_on(piece, lines, place, take);
      lines += piece.lines;
      entries += piece.entries;
    }
  }
  if (entries < header_.entries) fail_at_end(lines, entries);
}

}  // namespace tessera::io::internal
