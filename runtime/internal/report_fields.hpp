#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "tessera/device/host_cpu.hpp"
#include "tessera/runtime/host_cells.hpp"
#include "tessera/runtime/report_json.hpp"

// What reports of modelled machines and of this computer have in common as JSON and CSV.
namespace tessera::inline v0::runtime::internal {

using Json = nlohmann::ordered_json;

// What a report's status depends on besides its context.
struct Outcome {
  bool is_right = false, has_run = false, is_checked = false;
};
std::string status_of(const Outcome& outcome, const ReportContext& context);

// The members every report begins with, from schema_version to source.
Json opening(const std::string& source, const std::string& status, const ReportContext& context);
Json verdict_json(const std::optional<Verdict>& verdict);

// A layer on this computer.
struct HostFields {
  const planner::Problem& problem;
  const std::string& cpu_model;
  const device::HostCpu& cpu;
  int threads = 1;
};
Json host_json(const HostFields& of);
Json cells_json(const HostCells& cells);

// The first cells of a CSV row, up to the status; `tiles` may be empty.
struct CsvProblem {
  std::string source;
  const planner::Problem& problem;
  std::string machine, tiles, status;
};
std::string csv_problem(const CsvProblem& of, const ReportContext& context);
std::string csv_quoted(const std::string& text);

}  // namespace tessera::inline v0::runtime::internal
