#include "tessera/bench/published/sensitivity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/base/int_math.hpp"

namespace tessera::bench {

std::vector<Variation> variations(const Repetition& how) {
  std::vector<Variation> all{{"as it is", how}};
  const auto vary = [&](const char* name, auto change) {
    all.push_back({name, how});
    change(all.back().how.machine);
  };
  vary("sender 160", [](device::Machine& m) { m.receive_start = Cycles(160); });
  vary("sync 600", [](device::Machine& m) { m.sync = Cycles(600); });
  vary("no arranging", [](device::Machine& m) { m.arrange_bytes_per_cycle = 1 << 20; });
  vary("no launch", [](device::Machine& m) { m.launch = Cycles(0); });
  vary("no bus", [](device::Machine& m) { m.tiles_per_exchange_bus = 1; });
  return all;
}

namespace {

Cycles overhead_of(const device::StepRecord& step, const device::Machine& machine) {
  if (step.overhead == Cycles()) return {};
  switch (step.kind) {
    case StepKind::Compute:
      return machine.launch;
    case StepKind::Exchange:
      return machine.sync;
    case StepKind::Control:
      return machine.sync + machine.launch;
  }
  return {};
}

double best_rate(const Repeated& r, const device::Machine& from, const device::Machine& to) {
  double best = 0;
  for (const RepeatedRun& run : r.by_batch) best = std::max(best, repriced(run, from, to));
  return best;
}

std::string group_of(const PublishedPoint& point) {
  return fmt::format("block {}, {}", point.block.rows,
                     point.type == DataType::Half ? "half" : "float");
}

double misfit_without(const std::string& group, const std::vector<Repeated>& points,
                      const device::Machine& from, const device::Machine& to) {
  double sum = 0;
  for (const Repeated& r : points)
    if (group_of(r.point) != group)
      sum += std::abs(std::log(best_rate(r, from, to) / r.point.teraflops));
  return sum;
}

device::Machine derive_without(const std::string& group, const std::vector<Repeated>& points,
                               const device::Machine& from) {
  device::Machine best = from, candidate = from;
  double least = std::numeric_limits<double>::infinity();
  for (const std::int64_t rate : {1, 2, 3, 4})
    for (std::int64_t sync = 0; sync <= 1000; sync += 100) {
      candidate.arrange_bytes_per_cycle = rate;
      candidate.sync = Cycles(sync);
      const double misfit = misfit_without(group, points, from, candidate);
      if (misfit < least) least = misfit, best = candidate;
    }
  return best;
}

ErrorSummary errors_on(const device::Machine& machine, const std::string& group,
                       const std::vector<Repeated>& points, const device::Machine& from) {
  std::vector<double> errors;
  for (const Repeated& r : points)
    if (group_of(r.point) == group)
      errors.push_back(best_rate(r, from, machine) / r.point.teraflops - 1);
  return summary_of(errors);
}

}  // namespace

double repriced(const RepeatedRun& run, const device::Machine& from, const device::Machine& to) {
  Cycles cycles;
  for (const device::StepRecord& step : run.ledger.steps) {
    const std::int64_t bytes = step.cycles.value * from.arrange_bytes_per_cycle;
    cycles += step.phase == Phase::Arrange ? Cycles(ceil_div(bytes, to.arrange_bytes_per_cycle))
                                           : step.cycles;
    cycles += overhead_of(step, to);
  }
  return run.teraflops * (double(run.ledger.total().value) / from.clock_hz) /
         (double(cycles.value) / to.clock_hz);
}

std::vector<LeftOut> leave_one_group_out(const std::vector<Repeated>& points,
                                         const device::Machine& machine) {
  std::vector<LeftOut> result;
  for (const Repeated& r : points) {
    const std::string group = group_of(r.point);
    if (std::ranges::find(result, group, &LeftOut::group) != result.end()) continue;
    const device::Machine derived = derive_without(group, points, machine);
    result.push_back({group, derived.arrange_bytes_per_cycle, derived.sync,
                      errors_on(derived, group, points, machine)});
  }
  return result;
}

std::string sensitivity_text(const std::vector<PublishedPoint>& points, const Repetition& how,
                             Executor& executor) {
  const std::vector<Variation> all = variations(how);
  std::vector<std::vector<Repeated>> columns(all.size());
  std::string text = "errors in %, one constant changed at a time\n\n  m=k blk density  type";
  for (std::size_t i = 0; i < all.size(); ++i) {
    text += fmt::format(" {:>12}", all[i].name);
    for (const PublishedPoint& point : points)
      columns[i].push_back(repeat(point, all[i].how, executor));
  }
  for (std::size_t row = 0; row < points.size(); ++row) {
    const PublishedPoint& p = points[row];
    text += fmt::format("\n{:5} {:3} {:7.4g} {:>5}", p.side, p.block.rows, p.density,
                        p.type == DataType::Half ? "half" : "float");
    for (const auto& column : columns)
      text += column[row].fits() ? fmt::format(" {:+12.1f}", 100 * column[row].error())
                                 : fmt::format(" {:>12}", "no plan");
  }
  text += "\n\narranging and sync derived without a group, and the errors of that group in %\n\n";
  text += fmt::format("{:16} {:>11} {:>5} {:>7} {:>6}\n", "without", "bytes/cycle", "sync",
                      "median", "worst");
  std::vector<Repeated> fitting;
  for (const Repeated& r : columns.front())
    if (r.fits()) fitting.push_back(r);
  for (const LeftOut& out : leave_one_group_out(fitting, how.machine))
    text +=
        fmt::format("{:16} {:11} {:5} {:7.1f} {:6.1f}\n", out.group, out.arrange_bytes_per_cycle,
                    out.sync.value, 100 * out.errors.median, 100 * out.errors.worst);
  return text;
}

}  // namespace tessera::bench
