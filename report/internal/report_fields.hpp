#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tessera/host/cells.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/json/value.hpp"
#include "tessera/report/report_json.hpp"

// The JSON and CSV fields that reports of modelled machines and of this computer share.
namespace tessera::report::internal {

using Json = json::Value;

// The facts of a report that, together with its context, determine its status.
struct Outcome {
  bool is_right = false, has_run = false, is_checked = false;
};
std::string status_of(const Outcome& outcome, const ReportContext& context);

// Returns the members with which every report begins, from schema_version to weight_scale.
Json opening(const std::string& source, const std::string& status, const ReportContext& context);
Json verdict_json(const std::optional<verify::Verdict>& verdict);
Json self_check_json(const verify::Checksums& checksums);

// The fields of a report that describe a layer on this computer.
struct HostFields {
  const Problem& problem;
  const std::string& cpu_model;
  const host::HostCpu& cpu;
  int threads = 1;
};
Json host_json(const HostFields& of);
Json cells_json(const host::HostCells& cells);

// Returns the name of the form in which a pass reads R: "sparse", "packed" (rows with packed
// positions) or "dense".
std::string_view host_method(bool is_dense, bool is_packed);

// The first columns of a CSV row, up to the status. `tiles` may be empty.
struct CsvProblem {
  std::string source;
  const Problem& problem;
  std::string machine, tiles, status;
};
std::string csv_problem(const CsvProblem& of, const ReportContext& context);

}  // namespace tessera::report::internal
