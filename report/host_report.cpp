#include "tessera/report/host_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "tessera/report/internal/report_fields.hpp"
#include "tessera/report/internal/report_text.hpp"

namespace tessera::report {
namespace {

using internal::Json;
using internal::TextOut;

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

double rate(const HostReport& report, const HostPassReport& pass) {
  return share(report.useful_flops(), pass.times.seconds);
}

// Returns the share of kernels in the time of all threads.
double kernel_share(const HostReport& report, const HostPassReport& pass) {
  return share(pass.times.kernel_seconds, pass.times.seconds * report.threads);
}

bool is_checked(const HostReport& report) {
  return std::any_of(report.passes.begin(), report.passes.end(),
                     [](const HostPassReport& p) { return p.verdict.has_value(); });
}

void write_computer(const HostReport& report, TextOut out) {
  const host::HostCpu& cpu = report.cpu;
  internal::write_parts("machine",
                        {fmt::format("host: {}, {} cores", report.cpu_model, cpu.cores),
                         fmt::format("caches {}, {}, {}", internal::binary_size(cpu.l1_data),
                                     internal::binary_size(cpu.l2), internal::binary_size(cpu.l3)),
                         fmt::format("{} thread{}", report.threads, report.threads > 1 ? "s" : "")},
                        out);
  fmt::format_to(out, "encoded   {} values in {:.3f} ms, once\n", internal::grouped(report.values),
                 report.encode_seconds * 1e3);
}

void write_pass(const HostReport& report, const HostPassReport& pass, TextOut out) {
  fmt::format_to(out, "{:<8}{:>8}{:>8}{:>8}{:>8}", to_string(pass.pass), pass.cells.x, pass.cells.y,
                 pass.cells.z,
                 pass.is_dense     ? "dense"
                 : pass.is_packed  ? "rows"
                 : pass.cells.pack ? "packed"
                                   : "direct");
  fmt::format_to(out, "{:>13.4f}", pass.forecast_seconds * 1e3);
  if (pass.runs > 0)
    fmt::format_to(out, "{:>10.4f}{:>10.1f}{:>11.1f}{:>10.2f}{:>6}", pass.times.seconds * 1e3,
                   100 * share(pass.times.copy_seconds, pass.times.seconds),
                   100 * kernel_share(report, pass), rate(report, pass) * 1e-9, pass.runs);
  fmt::format_to(out, "\n");
}

void write_passes(const HostReport& report, TextOut out) {
  fmt::format_to(out, "\n{:<8}{:>8}{:>8}{:>8}{:>8}{:>13}", "pass", "cell x", "cell y", "cell z",
                 "operand", "forecast, ms");
  if (report.has_run())
    fmt::format_to(out, "{:>10}{:>10}{:>11}{:>10}{:>6}", "ms", "copies %", "kernels %", "GFLOP/s",
                   "runs");
  fmt::format_to(out, "\n");
  for (const HostPassReport& pass : report.passes) write_pass(report, pass, out);
}

// Writes a table of what each rank has, how long it takes and waits, and what it receives.
void write_ranks(const HostReport& report, TextOut out) {
  if (report.ranks.empty()) return;
  fmt::format_to(out, "\n{:<6}{:>10}{:>10}{:>10}{:>9}{:>7}{:>10}\n", "rank", "first row", "rows",
                 "values %", "threads", "cores", "peak MiB");
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    const HostRank& rank = report.ranks[i];
    fmt::format_to(out, "{:<6}{:>10}{:>10}{:>10.1f}{:>9}{:>7}{:>10.1f}\n", i, rank.first_row,
                   rank.rows, 100 * share(double(rank.values), double(report.values)), rank.threads,
                   rank.cores, double(rank.peak_bytes) / (1 << 20));
  }
  if (!report.has_run()) return;
  fmt::format_to(out, "\n{:<6}{:<8}{:>10}{:>11}{:>16}\n", "rank", "pass", "ms", "waiting %",
                 "received bytes");
  for (std::size_t i = 0; i < report.ranks.size(); ++i)
    for (const HostPassReport& pass : report.passes)
      if (i < pass.ranks.size())
        fmt::format_to(out, "{:<6}{:<8}{:>10.4f}{:>11.1f}{:>16}\n", i, to_string(pass.pass),
                       pass.ranks[i].seconds * 1e3,
                       100 * share(pass.ranks[i].wait_seconds, pass.ranks[i].seconds),
                       internal::grouped(pass.ranks[i].received_bytes));
}

void write_verdicts(const HostReport& report, TextOut out) {
  fmt::format_to(
      out,
      "times are measured, of the median of the runs; flops are counted, of stored values "
      "only\n");
  if (report.load > 0)
    fmt::format_to(out, "processor time {:.0f} % of wall time; load {:.1f}, stolen {:.1f} %\n",
                   100 * report.busy, report.load, 100 * report.stolen);
  fmt::format_to(out, "\n");
  std::int64_t ran = 0;
  for (const HostPassReport& pass : report.passes) {
    ran += pass.runs > 0;
    fmt::format_to(out, "{:<8}{}\n", to_string(pass.pass),
                   pass.verdict ? to_string(*pass.verdict) : "not checked");
  }
  const std::string_view outcome = !report.ok()         ? "FAIL"
                                   : is_checked(report) ? "PASS"
                                                        : "UNCHECKED";
  fmt::format_to(out, "{}: {:.4f} ms measured, {:.2f} useful GFLOP/s\n", outcome,
                 report.seconds() * 1e3,
                 share(report.useful_flops() * double(ran), report.seconds()) * 1e-9);
}

Json pass_json(const HostReport& report, const HostPassReport& pass) {
  Json json = {{"pass", to_string(pass.pass)},
               {"method", internal::host_method(pass.is_dense, pass.is_packed)},
               {"cells", internal::cells_json(pass.cells)},
               {"forecast_seconds", pass.forecast_seconds}};
  if (pass.runs > 0)
    json.update(Json{{"runs", pass.runs},
                     {"seconds", pass.times.seconds},
                     {"spread", pass.spread},
                     {"copy_seconds", pass.times.copy_seconds},
                     {"kernel_thread_seconds", pass.times.kernel_seconds},
                     {"useful_flops", report.useful_flops()}});
  for (const HostRankPass& rank : pass.ranks)
    json["ranks"].push_back({{"seconds", rank.seconds},
                             {"wait_seconds", rank.wait_seconds},
                             {"received_bytes", rank.received_bytes}});
  json["check"] = internal::verdict_json(pass.verdict);
  if (pass.self_check) json["self_check"] = internal::self_check_json(*pass.self_check);
  return json;
}

Json host_json(const HostReport& report) {
  Json json = internal::host_json({report.problem, report.cpu_model, report.cpu, report.threads});
  if (report.thread_peak_flops > 0) json["thread_peak_flops_per_second"] = report.thread_peak_flops;
  json.update(Json{{"values", report.values}, {"encode_seconds", report.encode_seconds}});
  if (report.load > 0)
    json.update(Json{
        {"processor_share", report.busy}, {"load", report.load}, {"stolen_share", report.stolen}});
  for (const HostRank& rank : report.ranks)
    json["ranks"].push_back({{"first_row", rank.first_row},
                             {"rows", rank.rows},
                             {"values", rank.values},
                             {"threads", rank.threads},
                             {"cores", rank.cores},
                             {"peak_bytes", rank.peak_bytes}});
  return json;
}

Json how_json(const HostReport& report) {
  Json how = {{"seconds", "measured"},
              {"copy_seconds", "measured"},
              {"kernel_thread_seconds", "measured"},
              {"encode_seconds", "measured"},
              {"forecast_seconds", "modelled"},
              {"useful_flops", "counted"},
              {"check", "measured"}};
  if (report.verdict) how["verdict"] = "measured";
  if (report.thread_peak_flops > 0) how["thread_peak_flops_per_second"] = "measured";
  return how;
}

}  // namespace

bool HostReport::ok() const {
  return std::all_of(passes.begin(), passes.end(),
                     [](const HostPassReport& p) { return !p.verdict || p.verdict->ok(); });
}

bool HostReport::has_run() const {
  return std::any_of(passes.begin(), passes.end(),
                     [](const HostPassReport& p) { return p.runs > 0; });
}

double HostReport::useful_flops() const { return 2.0 * double(values) * double(problem.size.z); }

double HostReport::seconds() const {
  double sum = 0;
  for (const HostPassReport& pass : passes) sum += pass.times.seconds;
  return sum;
}

std::string to_text(const HostReport& report) {
  std::string text;
  const TextOut out(text);
  internal::write_layer(report.source, report.problem, out);
  write_computer(report, out);
  write_passes(report, out);
  write_ranks(report, out);
  if (report.has_run()) write_verdicts(report, out);
  if (report.verdict) internal::write_parts("verdict", verdict_parts(*report.verdict), out);
  return text;
}

std::string status_of(const HostReport& report, const ReportContext& context) {
  return internal::status_of({report.ok(), report.has_run(), is_checked(report)}, context);
}

std::string to_json(const HostReport& report, const ReportContext& context) {
  Json passes = json::List();
  std::int64_t ran = 0;
  for (const HostPassReport& pass : report.passes) {
    passes.push_back(pass_json(report, pass));
    ran += pass.runs > 0;
  }
  Json document = internal::opening(report.source, status_of(report, context), context);
  document.update(
      Json{{"how", how_json(report)},
           {"host", host_json(report)},
           {"passes", std::move(passes)},
           {"total",
            {{"seconds", report.seconds()},
             {"useful_flops", report.useful_flops() * double(ran)},
             {"encode_seconds", report.encode_seconds}}},
           {"verdict", report.verdict ? json::parse_own(to_json(*report.verdict)) : Json()}});
  return document.dump(2) + "\n";
}

std::string to_csv(const HostReport& report, const ReportContext& context) {
  const std::string problem = internal::csv_problem(
      {report.source, report.problem, device::kHostMachine, "", status_of(report, context)},
      context);
  std::string text = csv_heading();
  for (const HostPassReport& pass : report.passes) {
    if (pass.runs == 0) continue;
    const double copies = pass.times.copy_seconds;
    const double kernels = pass.times.kernel_seconds / report.threads;
    const std::pair<const char*, double> phases[] = {
        {"copy", copies},
        {"kernels", kernels},
        {"rest", std::max(0.0, pass.times.seconds - copies - kernels)}};
    for (const auto& [phase, seconds] : phases)
      text += fmt::format("{},{},{},{},,,,,,,{:.9g},measured\n", problem, to_string(pass.pass),
                          phase, pass.runs, seconds);
  }
  return text;
}

}  // namespace tessera::report
