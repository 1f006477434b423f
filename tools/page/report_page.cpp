#include "tessera/tools/page/report_page.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tessera/base/error.hpp"
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

}  // namespace

bool can_make_pages() { return !internal::chart_library().empty(); }

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
