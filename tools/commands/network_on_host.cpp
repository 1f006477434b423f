#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/json/value.hpp"
#include "tessera/report/document.hpp"
#include "tessera/report/network_report.hpp"
#include "tessera/tools/commands/network_run.hpp"
#include "tessera/tools/options/inputs.hpp"
#include "tessera/train/network.hpp"
#include "tessera/train/network_file.hpp"

namespace tessera::tools {
namespace {

using Json = json::Value;
using runtime::NetworkWork;

// The measured time of one kind of work of one layer, counted from 0.
struct WorkSeconds {
  NetworkWork work = NetworkWork::Fwd;
  std::int64_t layer = 0;
  double seconds = 0;
};

// The shortest time of each work of all steps, and the loss before each step.
struct NetworkOnHostRun {
  std::vector<WorkSeconds> work;
  std::vector<float> losses;
  int threads = 0;

  double seconds() const {
    double sum = 0;
    for (const WorkSeconds& one : work) sum += one.seconds;
    return sum;
  }
};

template <class T>
NetworkOnHostRun run_network(const NetworkArguments& a, const planner::NetworkFile& file) {
  const auto executor = make_executor(a.threads);
  std::vector<sparse::Csr<float>> weights;
  for (std::int64_t l = 0; l < std::ssize(file.weights); ++l)
    weights.push_back(train::weights_of(file, l, a.seed));
  train::Network<T> network({.spec = file.spec}, weights, train::host_layers(*executor), *executor);
  train::NetworkState state = network.first_state(file.spec.optimiser);
  const train::DrawnBatch batch(file.spec, train::batch_seed(a.seed));
  NetworkOnHostRun run{.threads = executor->threads()};
  for (std::int64_t step = 0; step < a.steps; ++step) {
    std::size_t next = 0;
    const auto keep_shortest = [&](NetworkWork work, std::int64_t layer, double seconds) {
      if (step == 0) run.work.push_back({work, layer, seconds});
      run.work[next].seconds = std::min(run.work[next].seconds, seconds);
      ++next;
    };
    const float loss = network.run(batch.view(), state, keep_shortest);
    if (file.spec.loss) run.losses.push_back(loss);
  }
  return run;
}

// Layer after layer, and work that serves all layers last.
void order_by_layer(std::vector<WorkSeconds>& work) {
  std::ranges::stable_sort(work, {}, [](const WorkSeconds& one) {
    return std::tuple(report::serves_all(one.work), one.layer, one.work);
  });
}

Json json_of(const planner::NetworkFile& file, const NetworkOnHostRun& run) {
  Json work = json::List(), losses = run.losses;
  for (const WorkSeconds& one : run.work)
    work.push_back({{"layer", report::serves_all(one.work) ? Json("all") : Json(one.layer + 1)},
                    {"work", to_string(one.work)},
                    {"seconds", one.seconds}});
  Json json =
      json::parse_own(report::document_head("network on this computer", /*is_complete=*/true));
  json.update(Json{{"machine", "host"},
                   {"threads", run.threads},
                   {"layers", file.spec.layers.size()},
                   {"batch", file.spec.batch},
                   {"data_type", tessera::to_string(file.spec.data_type)},
                   {"loss", file.spec.loss ? Json(codelets::to_string(*file.spec.loss)) : Json()},
                   {"seconds", run.seconds()},
                   {"losses", std::move(losses)},
                   {"work", std::move(work)}});
  return json;
}

std::string text_of(const planner::NetworkFile& file, const NetworkOnHostRun& run) {
  std::string text = fmt::format(
      "{} layers, batch {}, {}, {} on this computer, {} threads\n\n{:<8}{:<12}{:>14}{:>10}\n",
      file.spec.layers.size(), file.spec.batch, tessera::to_string(file.spec.data_type),
      file.spec.loss ? "one training step" : "forward", run.threads, "layer", "work",
      "milliseconds", "share");
  const double all = std::max(run.seconds(), 1e-12);
  for (const WorkSeconds& one : run.work)
    text += fmt::format("{:<8}{:<12}{:>14.4f}{:>9.1f}%\n", report::layer_text(one.work, one.layer),
                        to_string(one.work), one.seconds * 1e3, 100 * one.seconds / all);
  text += fmt::format("{:<8}{:<12}{:>14.4f}\n", "sum", "", run.seconds() * 1e3);
  return text + (run.losses.empty() ? "" : "\n") + report::losses_text(run.losses);
}

study::Table work_table(const NetworkOnHostRun& run) {
  study::Table table{.key = "work",
                     .title = "Time by layer and work",
                     .note = "Measured; of each work the shortest of all steps.",
                     .columns = {{"place", "work of a layer"},
                                 {"layer", "layer"},
                                 {"work", "work"},
                                 {"seconds", "milliseconds", 4, 1e3},
                                 {"share", "share, %", 1, 100}},
                     .chart = study::Chart{.kind = study::Chart::Kind::Bars,
                                           .label = "Milliseconds by layer and work",
                                           .x = "place",
                                           .y = {"seconds"}}};
  const double all = std::max(run.seconds(), 1e-12);
  for (const WorkSeconds& one : run.work) {
    const std::string layer = report::layer_text(one.work, one.layer);
    const std::string work(to_string(one.work));
    table.rows.push_back(
        {fmt::format("{} {}", layer, work), layer, work, one.seconds, one.seconds / all});
  }
  return table;
}

study::Table loss_table(const NetworkOnHostRun& run) {
  study::Table table{
      .key = "losses",
      .title = "Loss",
      .note = "Before each step, always of the same batch.",
      .columns = {{"step", "step"}, {"loss", "loss", 4}},
      .chart = study::Chart{.label = "Loss before each step", .x = "step", .y = {"loss"}}};
  for (std::size_t step = 0; step < run.losses.size(); ++step)
    table.rows.push_back({std::int64_t(step) + 1, double(run.losses[step])});
  return table;
}

// The figures of the page.
study::Report study_of(const planner::NetworkFile& file, const NetworkOnHostRun& run) {
  const std::int64_t threads = run.threads;
  study::Report study{
      .name = "network on this computer",
      .title = file.spec.loss ? "Training step of a network" : "Outputs of a network",
      .subtitle =
          fmt::format("{} layers, batch {}, {}, on this computer, {} thread{}",
                      file.spec.layers.size(), file.spec.batch,
                      tessera::to_string(file.spec.data_type), threads, threads == 1 ? "" : "s"),
      .facts = {{"threads", threads}, {"seconds", run.seconds()}},
      .tables = {work_table(run)}};
  if (!run.losses.empty()) study.tables.push_back(loss_table(run));
  return study;
}

}  // namespace

int network_on_host(const NetworkArguments& a) {
  const planner::NetworkFile file = train::read_network(load_text(a.file), a.file);
  NetworkOnHostRun run = with_type(file.spec.data_type,
                                   [&](auto zero) { return run_network<decltype(zero)>(a, file); });
  order_by_layer(run.work);
  return write_study(a.output, study_of(file, run), text_of(file, run),
                     json_of(file, run).dump(2) + "\n");
}

}  // namespace tessera::tools
