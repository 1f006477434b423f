#include "tessera/tools/inputs.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "tessera/base/error.hpp"

namespace tessera::tools {

planner::PlanResult PlanSource::plan(const planner::Problem& problem,
                                     const device::Machine& machine,
                                     const planner::Options& options, const PatternStats* stats) {
  return cache_ ? cache_->plan(problem, machine, options, stats)
                : planner::plan(problem, machine, options, stats);
}

const planner::Plan& plan_of(const planner::PlanResult& result) {
  if (!result.has_plan) throw Error(ErrorCode::NoSolution, result.reason);
  return result.plan;
}

planner::PlannedLayer load_plan(const std::string& path) {
  return planner::plan_from_json(load_text(path), path);
}

sparse::ReadMatrix load_weights(const std::string& path) {
  try {
    sparse::ReadMatrix file = sparse::read_matrix(path);
    if (file.matrix.rows != 0 && file.matrix.cols != 0) return file;
    throw Error(ErrorCode::BadInput,
                fmt::format("{}: the matrix is {} x {}; a layer needs 1 x 1 at least", path,
                            file.matrix.rows, file.matrix.cols));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Internal) throw;
    throw Error(ErrorCode::BadInput, error.what());
  }
}

std::string load_text(const std::string& path) {
  using Bytes = std::istreambuf_iterator<char>;
  if (path == "-") return {Bytes(std::cin), Bytes()};
  std::error_code ignored;
  std::ifstream file(path, std::ios::binary);
  // A directory opens like a file, and throws only when it is read.
  if (!file || std::filesystem::is_directory(path, ignored))
    throw Error(ErrorCode::BadInput, fmt::format("{}: is no file that can be read", path));
  return {Bytes(file), Bytes()};
}

}  // namespace tessera::tools
