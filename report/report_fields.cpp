#include "tessera/report/internal/report_fields.hpp"

#include <fmt/format.h>

#include "tessera/base/commit.hpp"
#include "tessera/base/error.hpp"

namespace tessera::report::internal {

std::string status_of(const Outcome& outcome, const ReportContext& context) {
  if (!outcome.is_right) return "failed";
  if (context.is_partial) return "partial";
  if (!outcome.has_run) return "planned";
  return outcome.is_checked ? "passed" : "unchecked";
}

namespace {

// Programs want numbers as numbers and switches as switches.
Json value_of_option(const std::string& text) {
  try {
    const Json value = json::parse(text, "an option");
    const bool is_value = std::holds_alternative<std::int64_t>(value.data) ||
                          std::holds_alternative<double>(value.data) ||
                          std::holds_alternative<bool>(value.data);
    // A whole number beyond int64 is read as a double, which may be another number.
    const bool is_whole = text.find_first_not_of("-0123456789") == text.npos;
    if (is_value && !(is_whole && std::holds_alternative<double>(value.data))) return value;
  } catch (const Error&) {  // it is a text
  }
  return text;
}

}  // namespace

Json opening(const std::string& source, const std::string& status, const ReportContext& context) {
  Json configuration = json::Object();
  for (const auto& [option, value] : context.configuration)
    configuration[option] = value_of_option(value);
  return {
      {"schema_version", kReportSchemaVersion},
      {"tool",
       {{"name", context.tool}, {"version", context.version}, {"commit", std::string(commit())}}},
      {"status", status},
      {"seed", context.seed},
      {"configuration", std::move(configuration)},
      {"notes", context.notes},
      {"source", source},
      {"weight_scale", context.weight_scale}};
}

Json verdict_json(const std::optional<verify::Verdict>& verdict) {
  if (!verdict) return nullptr;
  return {{"compared", verdict->compared},
          {"wrong", verdict->wrong},
          {"largest_error_of_bound", verdict->worst},
          {"row", verdict->worst_row},
          {"column", verdict->worst_col}};
}

Json self_check_json(const verify::Checksums& checksums) {
  return {{"sums", checksums.compared},
          {"exact", checksums.exact},
          {"recomputed", checksums.recomputed},
          {"damaged_slots", checksums.damaged},
          {"first_damage", checksums.first_damage},
          {"repeated_because", checksums.first_failure},
          {"largest_difference", checksums.worst}};
}

Json host_json(const HostFields& of) {
  const Problem& p = of.problem;
  return {{"cpu", of.cpu_model},
          {"cores", of.cpu.cores},
          {"threads", of.threads},
          {"l1_bytes", of.cpu.l1_data.value},
          {"l2_bytes", of.cpu.l2.value},
          {"l3_bytes", of.cpu.l3.value},
          {"outputs", p.size.x},
          {"inputs", p.size.y},
          {"batch", p.size.z},
          {"groups", p.size.g},
          {"block_rows", p.block.rows},
          {"block_cols", p.block.cols},
          {"density", p.density},
          {"data_type", tessera::to_string(p.data_type)},
          {"partials_type", tessera::to_string(p.partials_type)}};
}

std::string_view host_method(bool is_dense, bool is_packed) {
  return is_dense ? "dense" : is_packed ? "packed" : "sparse";
}

Json cells_json(const host::HostCells& cells) {
  return {{"outputs", cells.x},
          {"inputs", cells.y},
          {"batch", cells.z},
          {"packed", cells.pack},
          {"gathered", cells.gather}};
}

std::string csv_problem(const CsvProblem& of, const ReportContext& context) {
  const Problem& p = of.problem;
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{}", csv_quoted(of.source), p.size.x,
                     p.size.y, p.size.z, p.size.g, p.block.rows, p.block.cols, p.density,
                     tessera::to_string(p.data_type), tessera::to_string(p.partials_type),
                     csv_quoted(of.machine), of.tiles, context.seed, of.status);
}

}  // namespace tessera::report::internal
