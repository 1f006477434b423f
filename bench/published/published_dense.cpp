#include "tessera/bench/published/published_dense.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tessera/io/table.hpp"

namespace tessera::bench {
namespace {

constexpr std::string_view kHalfName = "FP16", kFloatName = "FP32";

std::string line_of(const PlannedDense& p) {
  const std::string name(p.point.type == DataType::Half ? kHalfName : kFloatName);
  std::string line =
      fmt::format("{} {:5} {:6} {:8.1f}", name, p.point.side, p.point.batch, p.point.teraflops);
  if (!p.plan) return line + "  no plan fits\n";
  const planner::DensePassPlan& pass = p.plan->passes.front();
  using enum planner::Term;
  return line +
         fmt::format(" {:7.1f} {:+5.0f} % {:>6} {:>10} {:4.0f} {:4.0f} {:4.0f} {:4.0f} {:4.0f}\n",
                     p.teraflops, 100 * p.error(), pass.rounds.product(),
                     fmt::format("{}*{}*{}", pass.parts.rows, pass.parts.inner, pass.parts.columns),
                     percent_of(pass.cost, {Multiply}), percent_of(pass.cost, {ExchangeOperands}),
                     percent_of(pass.cost, {RearrangeOperands}),
                     percent_of(pass.cost, {ExchangeSums, ReduceSums}),
                     percent_of(pass.cost, {BarriersAndLaunches}));
}

// Returns the size of the error; a point without a plan has 1.
double magnitude(const PlannedDense& p) { return p.plan ? std::abs(p.error()) : 1; }

}  // namespace

double percent_of(const planner::PassCost& cost, std::initializer_list<planner::Term> terms) {
  double sum = 0;
  for (const planner::CostTerm& term : cost.terms)
    if (std::ranges::find(terms, term.name) != terms.end()) sum += double(term.cycles.value);
  return 100 * sum / double(cost.cycles().value);
}

bool is_dense_table(std::string_view text, std::string_view name) {
  const io::Table table = io::read_table(text, name);
  return table.find("n") != io::Table::kAbsent && table.find("block") == io::Table::kAbsent;
}

std::vector<DensePoint> read_dense_points(std::string_view text, std::string_view name) {
  const io::Table table = io::read_table(text, name);
  const std::size_t type = table.need("dtype"), side = table.need("m_eq_k"),
                    batch = table.need("n"), teraflops = table.need("tflops");
  constexpr std::int64_t kLargest = 1 << 20;
  std::vector<DensePoint> points;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const io::RowReader row(table, i);
    DensePoint p;
    if (row.cell(type) == kFloatName)
      p.type = DataType::Float;
    else if (row.cell(type) != kHalfName)
      row.refuse(type, "FP16 or FP32");
    p.side = row.count(side, kLargest);
    p.batch = row.count(batch, kLargest);
    p.teraflops = row.positive(teraflops);
    points.push_back(p);
  }
  return points;
}

std::vector<PlannedDense> plan_points(const std::vector<DensePoint>& points,
                                      const device::Machine& machine) {
  std::vector<PlannedDense> planned;
  for (const DensePoint& p : points) {
    const Problem problem{.size = {1, p.side, p.side, p.batch}, .data_type = p.type};
    PlannedDense result{p, planner::plan_dense(problem, machine).plan, 0};
    if (result.plan) {
      const double seconds = double(result.plan->cost.cycles.value) / machine.clock_hz;
      result.teraflops = 2 * double(problem.size.product()) / seconds / 1e12;
    }
    planned.push_back(std::move(result));
  }
  return planned;
}

std::string to_text(const std::vector<PlannedDense>& points, const device::Machine& machine) {
  std::string text = fmt::format(
      "dense TFLOP/s on {} at {:.3g} GHz, published and planned; the sums of halves are halves\n\n"
      "                     TFLOP/s                               % of cycles spent on\n"
      "type   m=k  batch publshd    ours   error rounds      parts mult exch copy redu wait\n",
      machine.name, machine.clock_hz / 1e9);
  std::vector<double> errors;
  for (const PlannedDense& p : points) {
    text += line_of(p);
    errors.push_back(magnitude(p));
  }
  if (errors.empty()) return text;
  std::ranges::sort(errors);
  return text + fmt::format("\nerror: median {:.1f} %, worst {:.1f} % of {} points\n",
                            100 * errors[errors.size() / 2], 100 * errors.back(), errors.size());
}

}  // namespace tessera::bench
