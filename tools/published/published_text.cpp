#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "tessera/tools/published/published.hpp"

namespace tessera::tools {
namespace {

std::string partition_of(const planner::Plan& plan) {
  return fmt::format("{}*{}*{}", plan.partition.x, plan.partition.y, plan.partition.z);
}

// The cycles of a run by their use.
struct Shares {
  double total = 0, multiply = 0, exchange = 0, propagate = 0, reduce = 0, wait = 0;
};

Shares shares_of(const device::Ledger& ledger) {
  Shares s;
  s.total = double(ledger.total().value);
  for (const device::PhaseTotal& phase : ledger.phases()) {
    if (phase.phase == Phase::Propagate) {
      s.propagate += double(phase.total().value);
      continue;
    }
    (phase.phase == Phase::Distribute ? s.multiply : s.reduce) += double(phase.compute.value);
    s.exchange += double(phase.exchange.value);
    s.wait += double(phase.overhead.value);
  }
  return s;
}

std::string line_of(const Repeated& r) {
  std::string line = fmt::format("{:5} {:4} {:7.4g} {:8.1f}", r.point.side, r.point.block.rows,
                                 r.point.density, r.point.teraflops);
  if (!r.fits()) return line + "  no plan fits at any batch\n";
  const RepeatedRun& m = r.median();
  const Shares s = shares_of(m.ledger);
  const auto percent = [&](double part) { return std::lround(100 * part / s.total); };
  line += fmt::format(" {:5.1f} {:+5.0f} % {:5} {:>9}", r.mean_teraflops(), 100 * r.error(),
                      m.batch, partition_of(m.plan));
  for (const double part : {s.multiply, s.exchange, s.reduce, s.propagate, s.wait})
    line += fmt::format(" {:4}", percent(part));
  return line + fmt::format(" {:3.0f} % {:.1f}..{:.1f}\n", 100 * r.spilled_share(),
                            r.runs.front().teraflops, r.runs.back().teraflops);
}

// Returns the size of the error; a point without a plan has 1.
double magnitude(const Repeated& r) { return r.fits() ? std::abs(r.error()) : 1; }

}  // namespace

std::string to_text(const std::vector<Repeated>& points, const Repetition& how) {
  std::string text = fmt::format(
      "non-zero TFLOP/s on {} at {:.3g} GHz, published and ours: the best of batches\n{};\n"
      "mean and range of {} random patterns; cycles are those of the pattern in the middle\n\n"
      "                      TFLOP/s                          % of cycles spent on     runs\n"
      "  m=k  blk density publshd  ours   error batch     x*y*z mult exch redu prop wait spill "
      "range\n",
      how.machine.name, how.machine.clock_hz / 1e9, fmt::join(how.batches, " "), how.patterns);
  std::vector<double> errors;
  for (const Repeated& r : points) {
    text += line_of(r);
    errors.push_back(magnitude(r));
  }
  if (errors.empty()) return text;
  std::sort(errors.begin(), errors.end());
  const std::size_t half = errors.size() / 2;
  const double median =
      errors.size() % 2 == 1 ? errors[half] : (errors[half - 1] + errors[half]) / 2;
  return text + fmt::format("\nerror: median {:.1f} %, worst {:.1f} % of {} points\n", 100 * median,
                            100 * errors.back(), errors.size());
}

std::string to_table(const std::vector<Repeated>& points) {
  std::string text =
      "m_eq_k\tblock\tdensity\ttflops\tour_tflops\tour_batch\tour_X\tour_Y\tour_Z\tour_cycles\t"
      "our_multiply\tour_exchange\tour_reduce\tour_propagate\tour_wait\n";
  for (const Repeated& r : points) {
    text += fmt::format("{}\t{}\t{}\t{}", r.point.side, r.point.block.rows, r.point.density,
                        r.point.teraflops);
    if (!r.fits()) {
      text += "\t\t\t\t\t\t\t\t\t\t\t\n";
      continue;
    }
    const RepeatedRun& m = r.median();
    const Shares s = shares_of(m.ledger);
    text +=
        fmt::format("\t{:.2f}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", r.mean_teraflops(),
                    m.batch, m.plan.partition.x, m.plan.partition.y, m.plan.partition.z,
                    m.ledger.total().value, s.multiply, s.exchange, s.reduce, s.propagate, s.wait);
  }
  return text;
}

}  // namespace tessera::tools
