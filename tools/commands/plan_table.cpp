#include "tessera/tools/commands/plan_table.hpp"

#include <fmt/format.h>

#include <ctime>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/io/table.hpp"

namespace tessera::tools {
namespace {

constexpr const char* kOurColumns[] = {"our_X",    "our_Y",  "our_Z",  "our_cycles",
                                       "our_temp", "our_nz", "our_mi", "our_ms"};

struct Columns {
  std::size_t output, input, batch, block, density, type, passes, tiles;
};

Columns columns_of(const io::Table& table) {
  for (const char* ours : kOurColumns)
    if (table.find(ours) != io::Table::kAbsent)
      throw Error(ErrorCode::BadInput,
                  fmt::format("{}:{}: the table already has a column {}; remove it", table.name,
                              table.header_line, ours));
  return {table.need("output_size"), table.need("input_size"), table.need("batch"),
          table.need("block"),       table.need("density"),    table.need("type"),
          table.need("passes"),      table.find("tiles")};
}

Problem problem_of(const io::RowReader& row, const Columns& at) {
  Problem p;
  p.size = {1, row.count(at.output, kLargestSize), row.count(at.input, kLargestSize),
            row.count(at.batch, kLargestSize)};
  const std::int64_t side = row.count(at.block, kLargestSize);
  p.block = {side, side};
  p.density = row.share(at.density);
  const std::string_view type = row.cell(at.type), passes = row.cell(at.passes);
  if (type != "float" && type != "half") row.refuse(at.type, "float or half");
  p.data_type = parse_data_type(type);
  if (passes != "all" && passes != "fwd" && passes != "bwd" && passes != "wu")
    row.refuse(at.passes, "all, fwd, bwd or wu");
  p.grad_a = passes == "all" || passes == "bwd";
  p.grad_w = passes == "all" || passes == "wu";
  return p;
}

struct RowLayer {
  Problem problem;
  std::int64_t tiles = 0;
};

std::vector<RowLayer> read_layers(const io::Table& table, const device::Machine& machine) {
  const Columns at = columns_of(table);
  std::vector<RowLayer> layers;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const io::RowReader row(table, i);
    const bool has_tiles = at.tiles != io::Table::kAbsent && !row.cell(at.tiles).empty();
    layers.push_back(
        {problem_of(row, at), has_tiles ? row.count(at.tiles, machine.tiles) : machine.tiles});
  }
  return layers;
}

std::string figures(const planner::PlanResult& result) {
  if (!result.has_plan) return "\t\t\t\t\t\t\t";
  const planner::Plan& p = result.plan;
  return fmt::format("\t{}\t{}\t{}\t{}\t{}\t{}\t{}", p.partition.x, p.partition.y, p.partition.z,
                     p.cost.cycles.value, p.cost.temp.value, p.nonzeros_per_bucket,
                     p.fwd_meta_words.value);
}

std::string planned_cells(const RowLayer& layer, const TableRequest& request,
                          const io::RowReader& row) {
  device::Machine machine = request.machine;
  machine.tiles = layer.tiles;
  try {
    const std::clock_t start = std::clock();
    const planner::PlanResult result = request.source.plan(layer.problem, machine, request.options);
    const double ms = 1000.0 * double(std::clock() - start) / CLOCKS_PER_SEC;
    return fmt::format("{}\t{:.3f}", figures(result), ms);
  } catch (const Error& error) {
    throw Error(error.code(), row.place() + error.what());
  }
}

}  // namespace

std::string plan_table(std::string_view text, std::string_view name, const TableRequest& request) {
  const io::Table table = io::read_table(text, name);
  const std::vector<RowLayer> layers = read_layers(table, request.machine);
  std::string result(table.comments);
  result += table.header.text;
  for (const char* column : kOurColumns) result += fmt::format("\t{}", column);
  result += table.header.end;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const io::TableLine& line = table.rows[i];
    result += line.text;
    result += planned_cells(layers[i], request, io::RowReader(table, i));
    result += line.end;
  }
  return result;
}

}  // namespace tessera::tools
