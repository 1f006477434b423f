#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "tessera/bench/published/published.hpp"

namespace tessera::bench {
namespace {

std::string partition_of(const planner::Plan& plan) {
  return fmt::format("{}*{}*{}", plan.partition.x, plan.partition.y, plan.partition.z);
}

// The cycles of a run by their use.
struct Shares {
  double total = 0, multiply = 0, arrange = 0, exchange = 0, propagate = 0, reduce = 0, wait = 0;
};

Shares shares_of(const device::Ledger& ledger) {
  Shares s;
  s.total = double(ledger.total().value);
  for (const device::PhaseTotal& phase : ledger.phases()) {
    if (phase.phase == Phase::Propagate) {
      s.propagate += double(phase.total().value);
      continue;
    }
    (phase.phase == Phase::Distribute ? s.multiply
     : phase.phase == Phase::Arrange  ? s.arrange
                                      : s.reduce) += double(phase.compute.value);
    s.exchange += double(phase.exchange.value);
    s.wait += double(phase.overhead.value);
  }
  return s;
}

std::string_view type_name(const PublishedPoint& point) {
  return point.type == DataType::Half ? "half" : "float";
}

std::string line_of(const Repeated& r) {
  std::string line =
      fmt::format("{:5} {:3} {:7.4g} {:>5} {:8.4g}", r.point.side, r.point.block.rows,
                  r.point.density, type_name(r.point), r.point.teraflops);
  if (!r.fits()) return line + "  no plan fits at any batch\n";
  const RepeatedRun& m = *r.measured;
  const Shares s = shares_of(m.ledger);
  line += fmt::format(" {:5.1f} {:+6.1f} % {:5} {:>8}", m.teraflops, 100 * r.error(), m.batch,
                      partition_of(m.plan));
  for (const double part : {s.multiply, s.arrange, s.exchange, s.reduce, s.propagate, s.wait})
    line += fmt::format(" {:4}", std::lround(100 * part / s.total));
  return line + "\n";
}

std::string name_of(const PublishedPoint& point) {
  return fmt::format("  {} x {}, block {}, density {:.4g}, {}: ", point.side, point.side,
                     point.block.rows, point.density, type_name(point));
}

// Says which batches have plans beyond the bound of the first search.
std::string larger_plans(const std::vector<Repeated>& points) {
  std::string text;
  for (const Repeated& r : points)
    if (!r.larger_batches.empty())
      text += name_of(r.point) + fmt::format("batch {}\n", fmt::join(r.larger_batches, ", "));
  if (text.empty()) return text;
  return "\nplans of 60 to 70 % of a tile, tried because no smaller one exists:\n" + text;
}

std::string spreads(const std::vector<Repeated>& points) {
  std::string text;
  for (const Repeated& r : points)
    if (!r.runs.empty())
      text += name_of(r.point) + fmt::format("{:.3g} to {:.3g}; {:.0f} % spill\n",
                                             r.runs.front().teraflops, r.runs.back().teraflops,
                                             100 * r.spilled_share());
  return text.empty() ? text : "\nTFLOP/s of random patterns:\n" + text;
}

}  // namespace

ErrorSummary summary_of(std::vector<double> errors) {
  if (errors.empty()) return {};
  for (double& error : errors) error = std::abs(error);
  std::sort(errors.begin(), errors.end());
  const std::size_t half = errors.size() / 2;
  const bool odd = errors.size() % 2 == 1;
  return {odd ? errors[half] : (errors[half - 1] + errors[half]) / 2, errors.back()};
}

ErrorSummary summary_of(const std::vector<Repeated>& points) {
  std::vector<double> errors;
  for (const Repeated& r : points) errors.push_back(r.fits() ? r.error() : 1);
  return summary_of(std::move(errors));
}

std::string to_text(const std::vector<Repeated>& points, const Repetition& how) {
  std::string text = fmt::format(
      "non-zero TFLOP/s on {} at {:.3g} GHz, published and ours: the best of batches\n{};\n"
      "the pattern that was measured\n\n"
      "                            TFLOP/s                          % of cycles spent on\n"
      "  m=k blk density  type publishd  ours    error batch    x*y*z mult arrg exch redu prop "
      "wait\n",
      how.machine.name, how.machine.clock_hz / 1e9, fmt::join(how.batches, " "));
  for (const Repeated& r : points) text += line_of(r);
  text += larger_plans(points) + spreads(points);
  if (points.empty()) return text;
  const ErrorSummary errors = summary_of(points);
  return text + fmt::format("\nerror: median {:.1f} %, worst {:.1f} % of {} points\n",
                            100 * errors.median, 100 * errors.worst, points.size());
}

std::string to_table(const std::vector<Repeated>& points) {
  std::string text =
      "m_eq_k\tblock\tdensity\ttype\ttflops\tour_tflops\tour_batch\tour_X\tour_Y\tour_Z\t"
      "our_cycles\tour_multiply\tour_arrange\tour_exchange\tour_reduce\tour_propagate\t"
      "our_wait\n";
  for (const Repeated& r : points) {
    text += fmt::format("{}\t{}\t{}\t{}\t{}", r.point.side, r.point.block.rows, r.point.density,
                        type_name(r.point), r.point.teraflops);
    if (!r.fits()) {
      text += "\t\t\t\t\t\t\t\t\t\t\t\t\n";
      continue;
    }
    const RepeatedRun& m = *r.measured;
    const Shares s = shares_of(m.ledger);
    text += fmt::format("\t{:.2f}\t{}\t{}\t{}\t{}\t{}", m.teraflops, m.batch, m.plan.partition.x,
                        m.plan.partition.y, m.plan.partition.z, m.ledger.total().value);
    for (const double part : {s.multiply, s.arrange, s.exchange, s.reduce, s.propagate, s.wait})
      text += fmt::format("\t{}", part);
    text += "\n";
  }
  return text;
}

}  // namespace tessera::bench
