#include "tessera/io/internal/text_source.hpp"

namespace tessera::io::internal {

std::string_view lines_between(const TextSource& text, std::int64_t first, std::int64_t begin,
                               std::int64_t end, std::string& buffer) {
  constexpr std::int64_t kMore = 256;  // longer than most lines, so that one read is enough
  const std::int64_t from = begin == first ? begin : begin - 1;
  // The last line is looked for from the byte before `end` on: if that ends a line, the next one
  // belongs to the next piece.
  const auto last = static_cast<std::size_t>(end - 1 - from);
  std::int64_t wanted = end - from + kMore;
  for (;;) {
    std::string_view piece = text.piece(from, wanted, buffer);
    const std::size_t start = begin == first ? 0 : piece.find('\n') + 1;  // 0 if there is none
    if (begin != first && (start == 0 || start > last)) return {};
    const std::size_t stop = piece.find('\n', last);
    if (stop != piece.npos) return piece.substr(start, stop + 1 - start);
    if (static_cast<std::int64_t>(piece.size()) < wanted) return piece.substr(start);
    wanted *= 2;
  }
}

}  // namespace tessera::io::internal
