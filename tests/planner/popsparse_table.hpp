#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tessera/planner/options.hpp"
#include "tessera/planner/problem.hpp"

// PopSparse's recorded plans: a row a layer, planned for gc200 with the options below.
namespace tessera::planner {

struct Row {
  std::map<std::string, std::string> field;

  const std::string& text(const std::string& name) const { return field.at(name); }
  std::int64_t number(const std::string& name) const { return std::stoll(field.at(name)); }
  bool found() const { return !text("X").empty(); }
};

inline std::vector<std::string> split(std::string line) {
  if (line.ends_with('\r')) line.pop_back();
  std::vector<std::string> cells;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, '\t');) cells.push_back(cell);
  return cells;
}

inline std::vector<Row> read_rows() {
  std::ifstream file(std::string(TESSERA_SOURCE_DIR) + "/tests/data/popsparse_plans.tsv");
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> names = split(line);
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    std::vector<std::string> cells = split(line);
    cells.resize(names.size());
    Row row;
    for (std::size_t i = 0; i < names.size(); ++i) row.field[names[i]] = cells[i];
    rows.push_back(row);
  }
  return rows;
}

inline Problem problem_of(const Row& row) {
  Problem p;
  p.size = {1, row.number("output_size"), row.number("input_size"), row.number("batch")};
  p.block = {row.number("block"), row.number("block")};
  p.density = std::stod(row.text("density"));
  p.data_type = parse_data_type(row.text("type"));
  p.grad_a = p.grad_w = row.text("passes") == "all";
  return p;
}

inline Options parity_options() {
  Options o;
  o.quirks = PopLibsQuirks::all();
  return o;
}

}  // namespace tessera::planner
