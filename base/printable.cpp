#include "tessera/base/printable.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace tessera {
namespace {

// A character that was read from UTF-8. `length` is 0 if the bytes are not UTF-8.
struct Character {
  std::uint32_t code = 0;
  std::size_t length = 0;
};

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || length > text.size()) return {};
  std::uint32_t code = lead & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0u) != 0x80u) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  // The shortest encoding is the only legal one, and surrogates are not characters.
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  return {code, length};
}

bool is_hidden(std::uint32_t code) {
  const bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  const bool is_direction =
      (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  const bool is_line_end = code == 0x2028 || code == 0x2029;
  return is_control || is_direction || is_line_end;
}

}  // namespace

std::string printable(std::string_view text, LineEnds line_ends) {
  std::string safe;
  while (!text.empty()) {
    const Character c = first_character(text);
    const std::size_t length = c.length == 0 ? 1 : c.length;
    const bool is_layout = c.code == '\n' || c.code == '\t';
    const bool is_kept =
        c.length != 0 && (is_layout ? line_ends == LineEnds::Keep : !is_hidden(c.code));
    for (const char byte : text.substr(0, length)) {
      if (is_kept)
        safe += byte;
      else
        safe += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    }
    text.remove_prefix(length);
  }
  return safe;
}

std::string range_of_indices(std::int64_t count) {
  return count < 1 ? "an empty range, because there are none" : fmt::format("0..{}", count - 1);
}

}  // namespace tessera
