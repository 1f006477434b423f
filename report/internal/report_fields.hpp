#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "tessera/host/cells.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/report/report_json.hpp"

// What reports of modelled machines and of this computer have in common as JSON and CSV.
namespace tessera::report::internal {

using Json = nlohmann::ordered_json;

// What a report's status depends on besides its context.
struct Outcome {
  bool is_right = false, has_run = false, is_checked = false;
};
std::string status_of(const Outcome& outcome, const ReportContext& context);

// The members every report begins with, from schema_version to source.
Json opening(const std::string& source, const std::string& status, const ReportContext& context);
Json verdict_json(const std::optional<verify::Verdict>& verdict);

// A layer on this computer.
struct HostFields {
  const Problem& problem;
  const std::string& cpu_model;
  const host::HostCpu& cpu;
  int threads = 1;
};
Json host_json(const HostFields& of);
Json cells_json(const host::HostCells& cells);

// The first cells of a CSV row, up to the status; `tiles` may be empty.
struct CsvProblem {
  std::string source;
  const Problem& problem;
  std::string machine, tiles, status;
};
std::string csv_problem(const CsvProblem& of, const ReportContext& context);
std::string csv_quoted(const std::string& text);

}  // namespace tessera::report::internal
