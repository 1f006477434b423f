#include "tessera/report/host_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tessera/base/error.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/report/internal/report_fields.hpp"

namespace tessera::report {
namespace {

using internal::Json;

// `forecast(pass)` returns the forecast of one group.
template <class Forecast>
HostWay with_forecasts(HostWay way, const Problem& p, const Forecast& forecast) {
  for (const Pass pass : passes_of(p))
    way.passes.emplace_back(pass, double(p.size.g) * forecast(pass));
  return way;
}

host::HostProblem one_group(Problem p, BlockShape block, double blocks) {
  p.size.g = 1;
  p.block = block;
  return {p.size_in_blocks(), block, std::int64_t(blocks), p.data_type};
}

bool divides(BlockShape block, std::int64_t side) {
  return side > block.rows && side % block.rows == 0 && side % block.cols == 0;
}

std::string cells_text(const HostPlan& plan) {
  std::string text = fmt::format("{:<8}{:>10}{:>10}{:>10}{:>10}\n", "pass", "cell x", "cell y",
                                 "cell z", "operand");
  const bool packs_rows = plan.ways.front().is_packed;
  for (const auto& [pass, c] : plan.cells)
    text += fmt::format("{:<8}{:>10}{:>10}{:>10}{:>10}\n", to_string(pass), c.x, c.y, c.z,
                        packs_rows && pass == Pass::Fwd ? "rows"
                        : c.pack                        ? "packed"
                                                        : "direct");
  return text;
}

std::string ways_text(const HostPlan& plan) {
  std::string text =
      fmt::format("{:<8}{:<8}{:>14}{:>14}{:>14}{:>14}{:>14}\n", "R as", "pass", "copies, ms",
                  "kernels, ms", "weights, ms", "results, ms", "forecast, ms");
  for (const HostWay& way : plan.ways)
    for (const auto& [pass, f] : way.passes)
      text += fmt::format("{:<8}{:<8}{:>14.4f}{:>14.4f}{:>14.4f}{:>14.4f}{:>14.4f}\n", way.name(),
                          to_string(pass), 1e3 * f.copy_seconds, 1e3 * f.kernel_seconds,
                          1e3 * f.stream_seconds, 1e3 * f.result_seconds, 1e3 * f.seconds());
  return text;
}

Json way_json(const HostWay& way) {
  Json json = {{"name", way.name()}, {"method", way.is_dense ? "dense" : "sparse"}};
  if (!way.is_dense)
    json.update(Json{{"block_rows", way.block.rows}, {"block_cols", way.block.cols}});
  json["passes"] = json::List();
  for (const auto& [pass, f] : way.passes)
    json["passes"].push_back({{"pass", to_string(pass)},
                              {"method", way.method(pass)},
                              {"copy_seconds", f.copy_seconds},
                              {"kernel_seconds", f.kernel_seconds},
                              {"stream_seconds", f.stream_seconds},
                              {"result_seconds", f.result_seconds},
                              {"forecast_seconds", f.seconds()}});
  json["forecast_seconds"] = way.seconds();
  return json;
}

Json how_json() {
  Json how = json::Object();
  for (const char* figure :
       {"copy_seconds", "kernel_seconds", "stream_seconds", "result_seconds", "forecast_seconds"})
    how[figure] = "modelled";
  return how;
}

}  // namespace

std::string HostWay::name() const {
  return is_dense ? "dense" : fmt::format("{}x{}", block.rows, block.cols);
}

std::string_view HostWay::method(Pass pass) const {
  return internal::host_method(is_dense, is_packed && pass == Pass::Fwd);
}

double HostWay::seconds() const {
  double sum = 0;
  for (const auto& [pass, forecast] : passes) sum += forecast.seconds();
  return sum;
}

const HostWay& HostPlan::fastest() const {
  TESSERA_ASSERT(!ways.empty());
  return *std::min_element(ways.begin(), ways.end(), [](const HostWay& a, const HostWay& b) {
    return a.seconds() < b.seconds();
  });
}

HostPlan plan_on_host(const Problem& problem, const host::HostCpu& cpu,
                      const host::FoundRates& found,
                      const std::function<double(BlockShape)>& blocks_as) {
  HostPlan plan{.problem = problem,
                .cpu_model = host::host_cpu_model(),
                .cpu = cpu,
                .threads = int(cpu.cores),
                .found = found,
                .cells = {},
                .ways = {}};
  const host::HostProblem own = one_group(problem, problem.block, blocks_as(problem.block));
  for (const Pass pass : passes_of(problem))
    plan.cells.emplace_back(pass, cells_of(pass, own, cpu, plan.threads));
  const host::HostSetting setting{cpu, plan.threads, plan.found.rates};
  const auto add = [&](BlockShape block) {
    const host::HostProblem host = one_group(problem, block, blocks_as(block));
    const bool is_packed = packs_forward(host, problem.grad_w, setting);
    plan.ways.push_back(
        with_forecasts({.block = block, .is_packed = is_packed}, problem, [&](Pass pass) {
          return is_packed && pass == Pass::Fwd ? forecast_packed(host, setting)
                                                : forecast_sparse(pass, host, setting);
        }));
  };
  add(problem.block);
  for (const std::int64_t side : kHostBlockSides)
    if (divides(problem.block, side)) add({side, side});
  const host::HostProblem dense = one_group(problem, {1, 1}, 0);
  plan.ways.push_back(with_forecasts({.is_dense = true}, problem, [&](Pass pass) {
    return forecast_dense(pass, dense, setting);
  }));
  return plan;
}

std::string to_text(const HostPlan& plan) {
  const std::string note =
      plan.found.note.empty() ? "" : fmt::format("note       {}\n", plan.found.note);
  return note +
         fmt::format("layer      {}\nmachine    {}: {}, {} cores\n\n", to_string(plan.problem),
                     device::kHostMachine, plan.cpu_model, plan.cpu.cores) +
         cells_text(plan) + "\n" + ways_text(plan) +
         fmt::format(
             "\nfastest: {}, {:.4f} ms; forecast for {} threads from rates measured before\n",
             plan.fastest().name(), plan.fastest().seconds() * 1e3, plan.threads);
}

std::string to_json(const HostPlan& plan) {
  Json notes = json::List(), passes = json::List(), ways = json::List();
  if (!plan.found.note.empty()) notes.push_back(plan.found.note);
  for (const auto& [pass, cells] : plan.cells)
    passes.push_back({{"pass", to_string(pass)}, {"cells", internal::cells_json(cells)}});
  for (const HostWay& way : plan.ways) ways.push_back(way_json(way));
  const Json document = {
      {"schema_version", kHostPlanSchemaVersion},
      {"notes", std::move(notes)},
      {"how", how_json()},
      {"host", internal::host_json({plan.problem, plan.cpu_model, plan.cpu, plan.threads})},
      {"rates",
       {{"origin", to_string(plan.found.origin)},
        {"cpu", plan.found.rates.cpu_model},
        {"dense_kernel", plan.found.rates.dense_kernel}}},
      {"passes", std::move(passes)},
      {"ways", std::move(ways)},
      {"fastest", plan.fastest().name()}};
  return document.dump(2) + "\n";
}

std::string to_csv(const HostPlan& plan) {
  std::string text = "form,pass,seconds\n";
  for (const HostWay& way : plan.ways)
    for (const auto& [pass, forecast] : way.passes)
      text += fmt::format("{},{},{}\n", way.name(), to_string(pass), forecast.seconds());
  return text;
}

std::string rates_text(const host::HostRates& rates) {
  std::string text = fmt::format(
      "computer      {}\npeak          {:.1f} float GFLOP/s a thread\n"
      "read          L1 {:.0f}, L2 {:.0f}, memory {:.1f} GB/s a thread\n"
      "dense         {}\n\n{:<7}{:<7}{:>7}{:>8}{:>16}{:>12}{:>12}\n",
      rates.cpu_model, rates.peak_flops * 1e-9, rates.l1_bytes_per_second * 1e-9,
      rates.l2_bytes_per_second * 1e-9, rates.memory_bytes_per_second * 1e-9, rates.dense_kernel,
      "pass", "type", "block", "batch", "blocks in a row", "GFLOP/s", "of peak");
  const auto line = [&](Pass pass, DataType type, const std::string& block, std::int64_t z,
                        const std::string& row, double flops) {
    text += fmt::format("{:<7}{:<7}{:>7}{:>8}{:>16}{:>12.2f}{:>12.3f}\n", to_string(pass),
                        tessera::to_string(type), block, z, row, flops * 1e-9,
                        flops / rates.peak_flops);
  };
  for (const host::KernelRate& k : rates.kernels)
    line(k.pass, k.type, std::to_string(k.block), k.z, fmt::format("{:.2f}", k.row_blocks),
         k.flops);
  for (const host::DenseRate& d : rates.dense) line(d.pass, d.type, "dense", d.z, "", d.flops);
  return text;
}

std::string host_rates_path() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  std::filesystem::path folder;
  if (cache != nullptr && *cache != '\0')
    folder = cache;
  else if (home != nullptr && *home != '\0')
    folder = std::filesystem::path(home) / ".cache";
  else
    return {};
  return (folder / "tessera" / "host_rates.json").string();
}

}  // namespace tessera::report
