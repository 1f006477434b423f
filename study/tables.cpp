#include "tessera/study/tables.hpp"

#include <fmt/format.h>

#include "tessera/base/printable.hpp"
#include "tessera/base/version.hpp"
#include "tessera/base/wrapped.hpp"
#include "tessera/json/value.hpp"
#include "tessera/report/document.hpp"
#include "tessera/report/report_json.hpp"

namespace tessera::study {
namespace {

using Json = json::Value;

constexpr const char* kNoteKey = "note";

Json cell_json(const Cell& cell) {
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
std::string cell_text(const Cell& cell, const Column& column) {
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

Json rows_json(const Table& table) {
  Json rows = json::List();
  for (const auto& row : table.rows) {
    Json object = json::Object();
    for (std::size_t i = 0; i < table.columns.size(); ++i)
      object[table.columns[i].key] = cell_json(row[i]);
    rows.push_back(std::move(object));
  }
  return rows;
}

Json study_document(const Report& study) {
  Json json = json::parse_own(report::document_head(study.name, study.is_complete));
  for (const auto& [key, value] : study.facts) json[key] = cell_json(value);
  for (const Table& table : study.tables) json[table.key] = rows_json(table);
  json["verdict"] = study.verdict.empty() ? Json() : Json(study.verdict);
  return json;
}

Json chart_json(const Chart& chart) {
  Json json = {{"kind", chart.kind == Chart::Kind::Bars ? "bars" : "lines"},
               {"label", chart.label},
               {"x", chart.x},
               {"y", chart.y},
               {"series", chart.series},
               {"is_log", chart.is_log}};
  if (chart.level) json["level"] = {{"name", chart.level->first}, {"value", chart.level->second}};
  return json;
}

}  // namespace

std::string table_text(const Table& table) {
  std::string text;
  const auto add_line = [&](const auto& text_of) {
    std::string line;
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      const Column& column = table.columns[i];
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

std::string csv_line(const std::vector<Cell>& row) {
  std::string line;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const auto* words = std::get_if<std::string>(&row[i]);
    line += i == 0 ? "" : ",";
    if (words != nullptr)
      line += report::csv_quoted(*words);
    else if (!std::holds_alternative<std::monostate>(row[i]))
      line += cell_text(row[i], {.key = {}});
  }
  return line + "\n";
}

std::string table_csv(const Table& table) {
  std::string text;
  for (const Column& column : table.columns) text += (text.empty() ? "" : ",") + column.key;
  text += "\n";
  for (const auto& row : table.rows) text += csv_line(row);
  return text;
}

std::string to_csv(const Report& study) {
  std::string text;
  for (const Table& table : study.tables) text += (text.empty() ? "" : "\n") + table_csv(table);
  return text;
}

std::string page_document(const Report& study, const std::string& date) {
  Json json = study_document(study);
  Json shown = json::List();
  for (const Table& table : study.tables) {
    Json columns = json::List();
    for (const Column& column : table.columns)
      columns.push_back({{"key", column.key}, {"title", column.title}, {"scale", column.scale}});
    shown.push_back({{"table", table.key},
                     {"title", table.title},
                     {"note", table.note},
                     {"columns", std::move(columns)},
                     {"chart", table.chart ? chart_json(*table.chart) : Json()}});
  }
  json["page"] = {{"title", study.title},
                  {"subtitle", study.subtitle},
                  {"date", date},
                  {"version", TESSERA_VERSION},
                  {"tables", std::move(shown)}};
  return json.dump();
}

std::string to_json(const Report& study) { return study_document(study).dump(2) + "\n"; }

std::string layer_words(const Problem& p) {
  return fmt::format("{} outputs, {} inputs, batch {}; {}, sums {}", p.size.x, p.size.y, p.size.z,
                     to_string(p.data_type), to_string(p.partials_type));
}

}  // namespace tessera::study
