#include "tessera/report/internal/report_text.hpp"

#include <fmt/format.h>

#include <cmath>

namespace tessera::report::internal {

std::string grouped(std::int64_t n) {
  const std::string digits = fmt::format("{}", n);
  std::string result;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i != 0 && (digits.size() - i) % 3 == 0) result += ',';
    result += digits[i];
  }
  return result;
}

std::string binary_size(Bytes bytes) {
  if (bytes.value >= 1024 * 1024) return fmt::format("{:.1f} MiB", double(bytes.value) / 1048576);
  if (bytes.value >= 1024) return fmt::format("{:.1f} KiB", double(bytes.value) / 1024);
  return fmt::format("{} B", bytes.value);
}

std::string block_name(BlockShape block) {
  return block.is_element() ? "elements" : fmt::format("{}x{} blocks", block.rows, block.cols);
}

void write_parts(std::string_view label, const std::vector<std::string>& parts, TextOut out) {
  constexpr std::size_t kColumns = 100, kIndent = 10;
  std::size_t column = kIndent;
  fmt::format_to(out, "{:<{}}", label, kIndent);
  for (const std::string& part : parts) {
    const bool last = &part == &parts.back();
    const bool first = &part == &parts.front();
    if (!first && column + 1 + part.size() + (last ? 0 : 1) > kColumns) {
      fmt::format_to(out, "\n{:{}}", "", kIndent);
      column = kIndent;
    } else if (!first) {
      *out = ' ';
      ++column;
    }
    fmt::format_to(out, "{}{}", part, last ? "" : ";");
    column += part.size() + (last ? 0 : 1);
  }
  *out = '\n';
}

void write_layer(const std::string& source, const Problem& p, TextOut out) {
  const Dims size = p.size_in_blocks();
  const std::int64_t all = size.g * size.x * size.y / p.block.area();
  fmt::format_to(out, "weights   {}\n", source);
  const std::string groups = p.size.g > 1 ? fmt::format("g {} groups, ", p.size.g) : "";
  write_parts(
      "layer",
      {fmt::format("{}x {} outputs, y {} inputs, z {} batch", groups, p.size.x, p.size.y, p.size.z),
       fmt::format("{}, sums {}", to_string(p.data_type), to_string(p.partials_type)),
       fmt::format("{} {} of {} (density {:.4f})", grouped(std::llround(p.density * double(all))),
                   block_name(p.block), grouped(all), p.density)},
      out);
}

}  // namespace tessera::report::internal
