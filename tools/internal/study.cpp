#include "tessera/tools/internal/study.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tessera/base/printable.hpp"
#include "tessera/base/version.hpp"
#include "tessera/report/report_json.hpp"
#include "tessera/tools/exit_code.hpp"
#include "tessera/tools/inputs.hpp"
#include "tessera/tools/internal/command_line.hpp"
#include "tessera/tools/internal/interrupt.hpp"
#include "tessera/tools/internal/manual.hpp"
#include "tessera/tools/internal/paths.hpp"
#include "tessera/tools/report_page.hpp"

namespace tessera::tools::internal {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kStudySchemaVersion = 1;
constexpr const char* kNoteKey = "note";

Json cell_json(const StudyCell& cell) {
  return std::visit(
      []<class T>(const T& value) {
        if constexpr (std::is_same_v<T, std::monostate>)
          return Json();
        else
          return Json(value);
      },
      cell);
}

// Returns a figure as people read it; "-" if there is none.
std::string cell_text(const StudyCell& cell, const StudyColumn& column) {
  if (const auto* text = std::get_if<std::string>(&cell)) return printable(*text);
  double value = 0;
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) {
    if (column.scale == 1) return std::to_string(*whole);
    value = double(*whole);
  } else if (const auto* number = std::get_if<double>(&cell)) {
    value = *number;
  } else {
    return "-";
  }
  value *= column.scale;
  if (column.decimals < 0) return fmt::format("{}", value);
  return fmt::format("{:.{}f}", value, column.decimals);
}

Json rows_json(const StudyTable& table) {
  Json rows = Json::array();
  for (const auto& row : table.rows) {
    Json object = Json::object();
    for (std::size_t i = 0; i < table.columns.size(); ++i)
      object[table.columns[i].key] = cell_json(row[i]);
    rows.push_back(std::move(object));
  }
  return rows;
}

Json study_document(const Study& study) {
  Json json = {{"schema_version", kStudySchemaVersion},
               {"study", study.name},
               {"status", study.is_complete ? "complete" : "partial"}};
  for (const auto& [key, value] : study.facts) json[key] = cell_json(value);
  for (const StudyTable& table : study.tables) json[table.key] = rows_json(table);
  json["verdict"] = study.verdict.empty() ? Json() : Json(study.verdict);
  return json;
}

Json chart_json(const StudyChart& chart) {
  Json json = {{"kind", chart.kind == StudyChart::Kind::Bars ? "bars" : "lines"},
               {"label", chart.label},
               {"x", chart.x},
               {"y", chart.y},
               {"series", chart.series},
               {"is_log", chart.is_log}};
  if (chart.level) json["level"] = {{"name", chart.level->first}, {"value", chart.level->second}};
  return json;
}

// Returns the document of the page: the study, and how its tables are shown.
std::string page_document(const Study& study) {
  Json json = study_document(study);
  Json shown = Json::array();
  for (const StudyTable& table : study.tables) {
    Json columns = Json::array();
    for (const StudyColumn& column : table.columns)
      columns.push_back({{"key", column.key}, {"title", column.title}, {"scale", column.scale}});
    shown.push_back({{"table", table.key},
                     {"title", table.title},
                     {"note", table.note},
                     {"columns", std::move(columns)},
                     {"chart", table.chart ? chart_json(*table.chart) : Json()}});
  }
  json["page"] = {{"title", study.title},
                  {"subtitle", study.subtitle},
                  {"date", date_of_today()},
                  {"version", TESSERA_VERSION},
                  {"tables", std::move(shown)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string table_text(const StudyTable& table) {
  std::string text;
  const auto add_line = [&](const auto& text_of) {
    std::string line;
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      const StudyColumn& column = table.columns[i];
      if (column.width == 0) continue;
      line += line.empty() ? fmt::format("{:<{}}", text_of(i), column.width)
                           : fmt::format("{:>{}}", text_of(i), column.width);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  add_line([&](std::size_t i) { return table.columns[i].title; });
  for (const auto& row : table.rows) {
    add_line([&](std::size_t i) { return cell_text(row[i], table.columns[i]); });
    for (std::size_t i = 0; i < row.size(); ++i)
      if (const auto* note = std::get_if<std::string>(&row[i]);
          table.columns[i].key == kNoteKey && note != nullptr && !note->empty())
        text += wrapped("  " + printable(*note) + "\n", /*indented=*/4, /*flush=*/4);
  }
  return text;
}

std::string table_csv(const StudyTable& table) {
  std::string text;
  for (const StudyColumn& column : table.columns) text += (text.empty() ? "" : ",") + column.key;
  text += "\n";
  for (const auto& row : table.rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const auto* words = std::get_if<std::string>(&row[i]);
      const bool is_empty = std::holds_alternative<std::monostate>(row[i]);
      line += i == 0 ? "" : ",";
      if (words != nullptr)
        line += report::csv_quoted(*words);
      else if (!is_empty)
        line += cell_text(row[i], {.key = {}, .title = {}});
    }
    text += line + "\n";
  }
  return text;
}

std::string study_page_of(const Study& study) { return study_page(page_document(study)); }

std::string study_json(const Study& study) {
  return study_document(study).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string layer_words(const Problem& p) {
  return fmt::format("{} outputs, {} inputs, batch {}; {}, sums {}", p.size.x, p.size.y, p.size.z,
                     to_string(p.data_type), to_string(p.partials_type));
}

void add_study_options(CLI::App& app, StudyOutput& output) {
  app.add_flag("--json", output.json, "print the figures as JSON");
  require_writable_file(
      *app.add_option("--html", output.html, "write the tables and charts as one HTML page")
           ->type_name("FILE"));
}

int write_study(const StudyOutput& output, const Study& study, const std::string& text,
                const std::string& json) {
  const EndsByItself reporting;
  if (!output.json)
    print_text(text);
  else
    print_results(json.empty() ? study_json(study) : json);
  if (!output.html.empty()) write_results(output.html, study_page_of(study));
  if (!is_interrupted()) return kOk;
  print_message("tessera: interrupted; the results so far are reported\n");
  return interrupted_exit_code();
}

}  // namespace tessera::tools::internal
