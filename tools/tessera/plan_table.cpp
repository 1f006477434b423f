#include "tessera/tools/tessera/plan_table.hpp"

#include <fmt/format.h>

#include <charconv>
#include <ctime>
#include <limits>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/tools/tessera/table.hpp"

namespace tessera::tools {
namespace {

constexpr std::int64_t kLargestSize = std::numeric_limits<std::int32_t>::max();
constexpr const char* kOurColumns[] = {"our_X",    "our_Y",  "our_Z",  "our_cycles",
                                       "our_temp", "our_nz", "our_mi", "our_ms"};

struct Columns {
  std::size_t output, input, batch, block, density, type, passes, tiles;
};

Columns columns_of(const Table& table) {
  for (const char* ours : kOurColumns)
    if (table.find(ours) != Table::kAbsent)
      throw Error(ErrorCode::BadInput,
                  fmt::format("{}:1: there is a column {} already; remove it", table.name, ours));
  return {table.need("output_size"), table.need("input_size"), table.need("batch"),
          table.need("block"),       table.need("density"),    table.need("type"),
          table.need("passes"),      table.find("tiles")};
}

// Reads the cells of one row.
class RowReader {
 public:
  RowReader(const Table& table, std::size_t row) : table_(table), row_(row) {}

  std::string place() const { return fmt::format("{}:{}: ", table_.name, row_ + 2); }
  std::string_view cell(std::size_t column) const { return table_.rows[row_].cells[column]; }

  [[noreturn]] void refuse(std::size_t column, std::string_view legal) const {
    constexpr std::size_t kLongest = 60;
    const std::string_view text = cell(column);
    throw Error(ErrorCode::BadInput,
                fmt::format("{}{} is \"{}{}\"; it must be {}", place(), table_.header.cells[column],
                            text.substr(0, kLongest), text.size() > kLongest ? "..." : "", legal));
  }
  std::int64_t count(std::size_t column, std::int64_t most) const {
    std::int64_t value = 0;
    if (!read(column, value) || value < 1 || value > most)
      refuse(column, fmt::format("a whole number in 1..{}", most));
    return value;
  }
  double share(std::size_t column) const {
    double value = 0;
    if (!read(column, value) || !(value >= 0 && value <= 1)) refuse(column, "a number in 0..1");
    return value;
  }

 private:
  template <class Number>
  bool read(std::size_t column, Number& value) const {
    const std::string_view text = cell(column);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size();
  }

  const Table& table_;
  std::size_t row_;
};

planner::Problem problem_of(const RowReader& row, const Columns& at) {
  planner::Problem p;
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
  planner::Problem problem;
  std::int64_t tiles = 0;
};

std::vector<RowLayer> read_layers(const Table& table, const device::Machine& machine) {
  const Columns at = columns_of(table);
  std::vector<RowLayer> layers;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowReader row(table, i);
    const bool has_tiles = at.tiles != Table::kAbsent && !row.cell(at.tiles).empty();
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
                          const RowReader& row) {
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
  const Table table = read_table(text, name);
  const std::vector<RowLayer> layers = read_layers(table, request.machine);
  std::string result(table.header.text);
  for (const char* column : kOurColumns) result += fmt::format("\t{}", column);
  result += table.header.end;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const TableLine& line = table.rows[i];
    result += line.text;
    result += planned_cells(layers[i], request, RowReader(table, i));
    result += line.end;
  }
  return result;
}

}  // namespace tessera::tools
