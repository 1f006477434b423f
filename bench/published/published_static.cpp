#include "tessera/bench/published/published_static.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tessera/bench/published/measured_pattern.hpp"
#include "tessera/bench/published/published_dense.hpp"
#include "tessera/io/table.hpp"

namespace tessera::bench {
namespace {

std::string line_of(const PlannedStatic& p) {
  const StaticPoint& point = p.point;
  std::string line = fmt::format("{:5} {:5} {:3} {:7.4g} {:9.0f}", point.side, point.batch,
                                 point.block.rows, point.density, p.published_cycles);
  if (!p.cost) return line + "  no plan fits\n";
  using enum planner::Term;
  const planner::PassCost& pass = p.cost->passes.front();
  return line + fmt::format(" {:8} {:+5.0f} % {:8} {:>7} {:4.0f} {:4.0f} {:4.0f} {:4.0f} {:4.0f}\n",
                            p.cost->cycles.value, 100 * p.error(), p.estimate,
                            fmt::format("{}*{}", p.parts, p.bands), percent_of(pass, {Multiply}),
                            percent_of(pass, {ArrangeOperands, ArrangeResult}),
                            percent_of(pass, {ExchangeOperands, ExchangeAlongZ}),
                            percent_of(pass, {ExchangeSums, ReduceSums}),
                            percent_of(pass, {BarriersAndLaunches}));
}

std::string errors_text(std::string_view name, const std::vector<PlannedStatic>& points) {
  const StaticErrors e = errors_of(points);
  return fmt::format("{:<10} {:6} {:7.1f} % {:7.1f} % {:7.1f} %\n", name, points.size(),
                     100 * e.median, 100 * e.ninetieth, 100 * e.worst);
}

// Returns a line for each value of `key` among the points.
template <class Key>
std::string grouped_text(std::string_view name, const std::vector<PlannedStatic>& points,
                         const Key& key) {
  std::map<std::int64_t, std::vector<PlannedStatic>> groups;
  for (const PlannedStatic& p : points) groups[key(p.point)].push_back(p);
  std::string text;
  for (const auto& [value, members] : groups)
    text += errors_text(fmt::format("{} {}", name, value), members);
  return text;
}

PlannedStatic planned(const StaticPoint& point, const sparse::Csr<float>& pattern,
                      const device::Machine& machine) {
  const Problem problem{.size = {1, point.side, point.side, point.batch},
                        .block = point.block,
                        .density = point.density};
  const planner::BlockPattern view{pattern.block, pattern.block_rows(), pattern.block_cols(),
                                   pattern.row_begin, pattern.col};
  PlannedStatic result{.point = point, .cost = {}};
  result.published_cycles = point.cycles(machine.clock_hz);
  const auto plan = planner::plan_static_as_poplibs(problem, view, machine).plan;
  if (!plan) return result;
  result.parts = plan->z_parts;
  result.bands = std::ssize(plan->bands) - 1;
  result.estimate = plan->cost.cycles.value;
  result.cost = planner::count_static_cost(*plan, problem, view, machine);
  return result;
}

}  // namespace

double StaticPoint::cycles(double clock_hz) const {
  return 2 * double(side) * double(side) * double(batch) * density / (teraflops * 1e12) * clock_hz;
}

bool is_static_table(std::string_view text, std::string_view name) {
  const io::Table table = io::read_table(text, name);
  return table.find("n") != io::Table::kAbsent && table.find("block") != io::Table::kAbsent;
}

std::vector<StaticPoint> read_static_points(std::string_view text, std::string_view name) {
  const io::Table table = io::read_table(text, name);
  const std::size_t side = table.need("m_eq_k"), batch = table.need("n"),
                    block = table.need("block"), density = table.need("density"),
                    teraflops = table.need("tflops");
  constexpr std::int64_t kLargest = 1 << 20;
  std::vector<StaticPoint> points;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const io::RowReader row(table, i);
    StaticPoint p;
    p.side = row.count(side, kLargest);
    p.batch = row.count(batch, kLargest);
    p.block.rows = p.block.cols = row.count(block, p.side);
    if (p.side % p.block.rows != 0) row.refuse(block, "a divisor of m_eq_k");
    p.density = row.share(density);
    p.teraflops = row.positive(teraflops);
    points.push_back(p);
  }
  return points;
}

std::vector<PlannedStatic> plan_points(const std::vector<StaticPoint>& points,
                                       const device::Machine& machine) {
  std::vector<PlannedStatic> result;
  const StaticPoint* drawn = nullptr;
  sparse::Csr<float> pattern;
  for (const StaticPoint& p : points) {
    const bool is_drawn = drawn != nullptr && drawn->side == p.side && drawn->block == p.block &&
                          drawn->density == p.density;
    if (!is_drawn) pattern = measured_pattern(p.side, p.block, p.density);
    drawn = &p;
    result.push_back(planned(p, pattern, machine));
  }
  return result;
}

StaticErrors errors_of(const std::vector<PlannedStatic>& points) {
  std::vector<double> errors;
  for (const PlannedStatic& p : points) errors.push_back(p.cost ? std::abs(p.error()) : 1);
  if (errors.empty()) return {};
  std::ranges::sort(errors);
  return {errors[errors.size() / 2], errors[errors.size() * 9 / 10], errors.back()};
}

std::string to_text(const std::vector<PlannedStatic>& points, const device::Machine& machine) {
  std::string text = fmt::format(
      "cycles of static products in half on {} at {:.3g} GHz: published, PopLibs' plan with the\n"
      "counts of the measured pattern, and PopLibs' own estimate of that plan\n\n"
      "                              cycles                              % of cycles spent on\n"
      "  m=k batch blk density published     ours   error PopLibs'   z*bands mult arrg exch redu "
      "wait\n",
      machine.name, machine.clock_hz / 1e9);
  for (const PlannedStatic& p : points) text += line_of(p);
  if (points.empty()) return text;
  const StaticErrors all = errors_of(points);
  return text + "\nerror      points   median  90 of 100   worst\n" +
         grouped_text("batch", points, [](const StaticPoint& p) { return p.batch; }) +
         grouped_text("block", points, [](const StaticPoint& p) { return p.block.rows; }) +
         errors_text("all", points) +
         fmt::format("\nerror: median {:.1f} %, worst {:.1f} % of {} points\n", 100 * all.median,
                     100 * all.worst, points.size());
}

}  // namespace tessera::bench
