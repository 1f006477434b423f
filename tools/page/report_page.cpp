#include "tessera/tools/page/report_page.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "tessera/base/error.hpp"
#include "tessera/base/printable.hpp"
#include "tessera/runtime/tile_map.hpp"
#include "tessera/tools/page/internal/page_assets.hpp"

namespace tessera::tools {
namespace {

using Json = nlohmann::ordered_json;

// Appends the part of the template before a mark, and the text that replaces the mark. Marks are
// searched for in the template only, because names in the report may contain them.
void put(std::string& page, std::string_view& rest, std::string_view mark, std::string_view text) {
  const std::size_t at = rest.find(mark);
  TESSERA_ASSERT(at != std::string::npos);
  page += rest.substr(0, at);
  page += text;
  rest.remove_prefix(at + mark.size());
}

// Returns JSON that is safe inside a script element: it has no "</", which would end the element,
// and no "<!--", which would hide the text.
std::string for_script(const std::string& json) {
  std::string text;
  for (const char c : json) text += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return text;
}

std::string page_of(const Json& document) {
  if (!can_make_pages())
    throw Error(
        ErrorCode::InvalidArgument,
        "pages: this program was built without the chart library; install npm and build again");
  std::string page;
  std::string_view rest = internal::page_template();
  put(page, rest, "/*STYLE*/", internal::page_style());
  put(page, rest, "/*REPORT*/",
      for_script(document.dump(-1, ' ', false, Json::error_handler_t::replace)));
  put(page, rest, "/*CHARTS*/", internal::chart_library());
  put(page, rest, "/*SCRIPT*/", internal::page_script());
  return page.append(rest);
}

// Returns the time that pages name: that of SOURCE_DATE_EPOCH, if it is set, so that a run can be
// repeated byte by byte.
std::time_t seconds_of_pages() {
  const char* const given = std::getenv("SOURCE_DATE_EPOCH");
  if (given == nullptr) return std::time(nullptr);
  const std::string_view text = given;
  constexpr std::int64_t kMost = 253402300799;  // the end of the year 9999
  std::int64_t seconds = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds < 0 || seconds > kMost)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("SOURCE_DATE_EPOCH is \"{}\"; it must be a whole number of seconds in "
                            "0..{}, or not set",
                            printable(text), kMost));
  return std::time_t(seconds);
}

}  // namespace

bool can_make_pages() { return !internal::chart_library().empty(); }

const std::string& date_of_today() {
  static const std::string date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(seconds_of_pages()));
  return date;
}

std::string tiles_json(std::span<const partitioner::Buckets* const> groups, bool is_transposed) {
  const partitioner::TileGrid& grid = groups.front()->grid;
  const runtime::TileMap map({std::ssize(groups), grid.splits.x, grid.splits.y, grid.splits.z},
                             runtime::TileOrder::Yzx);
  Json tiles = Json::array();
  for (const TileId tile : map.all()) {
    const runtime::Cell cell = map.cell(tile);
    const auto first = groups[std::size_t(cell.g)]->source.begin() +
                       grid.bucket_index(cell.x, cell.y, cell.z) * grid.blocks;
    const std::int64_t held =
        std::count_if(first, first + grid.blocks, [](std::int32_t block) { return block >= 0; });
    tiles.push_back({{"tile", tile.value},
                     {"g", cell.g},
                     {"x", is_transposed ? cell.y : cell.x},
                     {"y", is_transposed ? cell.x : cell.y},
                     {"z", cell.z},
                     {"values", held * grid.block.area()},
                     {"fill", double(held) / double(std::max<std::int64_t>(grid.blocks, 1))}});
  }
  return tiles.dump();
}

std::string report_page(const std::string& report_json, const PageExtras& extras) {
  Json report = Json::parse(report_json);
  if (!extras.explanation.empty()) report["explanation"] = Json::parse(extras.explanation);
  if (!extras.tiles.empty()) report["tiles"] = Json::parse(extras.tiles);
  if (!extras.transposed_tiles.empty())
    report["transposed_tiles"] = Json::parse(extras.transposed_tiles);
  if (!extras.date.empty()) report["date"] = extras.date;
  return page_of(report);
}

std::string study_page(const std::string& study_json) { return page_of(Json::parse(study_json)); }

}  // namespace tessera::tools
