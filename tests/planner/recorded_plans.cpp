#include "tessera/tests/planner/recorded_plans.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "tessera/base/error.hpp"

namespace tessera::planner {
namespace {

std::vector<std::string> split(std::string line) {
  if (line.ends_with('\r')) line.pop_back();
  std::vector<std::string> cells;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, '\t');) cells.push_back(cell);
  return cells;
}

std::vector<RecordedPlan> read_all() {
  const std::string path = std::string(TESSERA_SOURCE_DIR) + "/tests/data/popsparse_plans.tsv";
  std::ifstream file(path);
  if (!file) throw Error(ErrorCode::BadInput, "cannot read " + path);
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> names = split(line);
  std::vector<RecordedPlan> rows;
  while (std::getline(file, line)) {
    std::vector<std::string> cells = split(line);
    cells.resize(names.size());
    RecordedPlan& row = rows.emplace_back();
    for (std::size_t i = 0; i < names.size(); ++i) row.field[names[i]] = cells[i];
  }
  return rows;
}

}  // namespace

Problem RecordedPlan::problem() const {
  Problem p;
  p.size = {1, number("output_size"), number("input_size"), number("batch")};
  p.block = {number("block"), number("block")};
  p.density = std::stod(text("density"));
  p.data_type = parse_data_type(text("type"));
  p.grad_a = p.grad_w = text("passes") == "all";
  return p;
}

std::vector<RecordedPlan> read_recorded_plans(const std::vector<std::string>& ids) {
  std::vector<RecordedPlan> all = read_all();
  if (ids.empty()) return all;
  std::vector<RecordedPlan> named;
  for (const std::string& id : ids) {
    const auto row = std::find_if(all.begin(), all.end(), [&](const RecordedPlan& candidate) {
      return candidate.text("id") == id;
    });
    if (row == all.end())
      throw Error(ErrorCode::InvalidArgument, "no recorded plan has the id " + id);
    named.push_back(*row);
  }
  return named;
}

Options parity_options() {
  Options o;
  o.poplibs_parity = true;
  return o;
}

}  // namespace tessera::planner
