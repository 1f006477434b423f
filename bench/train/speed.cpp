#include "tessera/bench/train/speed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/bench/timing.hpp"
#include "tessera/bench/train/plain_step.hpp"
#include "tessera/bench/train/searches.hpp"
#include "tessera/host/float_peak.hpp"
#include "tessera/host/gradient_panels.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::bench {
namespace {

using train::Activity;

constexpr int kSteps = 200;

double median(std::vector<double> all) {
  std::nth_element(all.begin(), all.begin() + std::ssize(all) / 2, all.end());
  return all[all.size() / 2];
}

// A network in training, with data that it does not own.
struct Training {
  std::unique_ptr<Executor> executor;
  train::Network<> network;
  train::Trainer trainer;

  Training(const train::DataSet& data, const train::NetworkOptions& shape,
           const train::Method& method, std::int64_t every, std::unique_ptr<Executor> made)
      : executor(std::move(made)),
        network(shape, train::host_layers(*executor), *executor),
        trainer(network, data, options(method, every)) {}

  static train::TrainOptions options(const train::Method& method, std::int64_t every) {
    train::TrainOptions made = train::usual_options(method, 30 * 468, 0.01);
    made.schedule.every = every;
    made.schedule.decay = train::FractionDecay::Constant;
    return made;
  }

  // Median seconds of a step.
  double step_seconds(int steps, Clock clock = Clock::OwnThread) {
    trainer.step();
    std::vector<double> all;
    for (int i = 0; i < steps; ++i) all.push_back(seconds([&] { trainer.step(); }, clock));
    return median(all);
  }

  double useful_flops() const {
    double flops = 0;
    for (std::int64_t i = 0; i < network.layers(); ++i)
      flops += (i == 0 ? 2.0 : 3.0) * double(network.weights(i).values.size());
    return 2 * double(network.spec().batch) * flops;
  }

  double share_of_passes() const {
    const auto& spent = trainer.report().seconds;
    const double passes =
        spent[Activity::Forward] + spent[Activity::GradA] + spent[Activity::GradW];
    return passes / (spent.sum() - spent[Activity::Evaluation]);
  }
};

train::NetworkOptions shape_of(std::vector<std::int64_t> sizes, double density,
                               std::int64_t block) {
  return {.sizes = std::move(sizes), .density = density, .block = {block, block}};
}

const std::vector<std::int64_t> kSmall = {784, 1024, 10}, kLarge = {784, 4096, 4096, 10};

void step_bars(const train::DataSet& data, Report& report) {
  const double peak = host::measure_float_peak().fused;
  struct Bar {
    std::vector<std::int64_t> sizes;
    double density;
    std::int64_t block;
    double at_least, share = 0, dense_ratio = 0;
  };
  Training dense(data, shape_of(kSmall, 1, 1), train::Static{}, 100, sequential());
  const double dense_step = dense.step_seconds(kSteps);
  report.tell("784-1024-10 dense, ms a step", 1e3 * dense_step);
  for (const Bar& bar : std::vector<Bar>{{kSmall, 0.1, 1, 0.50, 0.80, 3.8},
                                         {kSmall, 0.02, 1, 0.45, 0, 10},
                                         {kSmall, 0.1, 8, 0.72},
                                         {kLarge, 0.1, 1, 0.40, 0.82},
                                         {kLarge, 0.02, 1, 0.37},
                                         {kLarge, 0.1, 16, 0.82}}) {
    Training run(data, shape_of(bar.sizes, bar.density, bar.block), train::Static{}, 100,
                 sequential());
    const double step = run.step_seconds(kSteps);
    const std::string name = fmt::format("{}, density {}, block {}",
                                         bar.sizes.size() == 3 ? "784-1024-10" : "784-4096-4096-10",
                                         bar.density, bar.block);
    report.tell(name + ": ms a step", 1e3 * step);
    report.at_least(name + ": share of the float peak", run.useful_flops() / step / peak,
                    bar.at_least);
    if (bar.share > 0)
      report.at_least(name + ": passes' share of a step", run.share_of_passes(), bar.share);
    if (bar.dense_ratio > 0)
      report.at_least(name + ": dense step by sparse step", dense_step / step, bar.dense_ratio);
  }
}

// A rewire by a step that does not rewire, both by the CPU clock of the thread: a step of RigL that
// rewires has the passes of the other step, but not its optimiser.
void rewire_bars(const train::DataSet& data, Report& report) {
  for (const auto& [sizes, bar] : {std::pair{kSmall, 4.0}, std::pair{kLarge, 4.5}}) {
    constexpr int kRewires = 9;
    Training fixed(data, shape_of(sizes, 0.1, 1), train::Static{}, 1, sequential()),
        moving(data, shape_of(sizes, 0.1, 1), train::RigL{}, 1, sequential());
    const double step = fixed.step_seconds(kRewires);
    const auto& spent = fixed.trainer.report().seconds;
    const double optimiser = step * spent[Activity::Optimiser] / spent.sum();
    const double rewire = moving.step_seconds(kRewires) - (step - optimiser);
    report.at_most(fmt::format("{}, density 0.1: a rewire of 30 % by a step",
                               sizes.size() == 3 ? "784-1024-10" : "784-4096-4096-10"),
                   rewire / step, bar);
  }
}

// Growth at 30 % of the pattern by the dense product alone, and by samples by a GradW pass.
void growth_bars(Report& report) {
  constexpr std::int64_t kSide = 4096, kBatch = 128;
  const auto executor = sequential();
  const auto q = random_matrix<float>(kSide, kBatch, 1), s = random_matrix<float>(kSide, kBatch, 2);
  const train::GradientBatch batch{q.view(), s.view()};
  const host::HostCpu cpu = host::read_host_cpu();
  for (const auto& [density, bar] : {std::pair{0.1, 1.5}, std::pair{0.02, 1.25}}) {
    const auto pattern = sparse::random_pattern(kSide, kSide, {}, density, 3);
    const std::int64_t k = pattern.blocks() * 3 / 10;
    const auto times = medians(
        {[&] {
           train::exact_gradients({pattern, {&batch, 1}, k, train::BlockScore::Sum}, *executor);
         },
         [&] {
           host::for_each_gradient_panel(host::gradient_panel_size(), {&batch, 1}, *executor,
                                         [](const auto&, const auto&) {});
         }});
    report.at_most(
        fmt::format("growth of 30 % of 4096 x 4096, density {}, by the dense product", density),
        times[0] / times[1], bar);
    report.tell("  its ms", 1e3 * times[0]);
    if (density != 0.02) continue;
    Problem problem{.size = {1, kSide, kSide, kBatch},
                    .density = density,
                    .data_type = DataType::Float,
                    .grad_w = true};
    host::HostLayer layer(problem, cpu, *executor);
    layer.set_weights(pattern);
    std::vector<float> gradients(pattern.values.size());
    const auto sampled =
        medians({[&] {
                   train::sampled_gradients({pattern, {&batch, 1}, k, train::BlockScore::Sum},
                                            {2 * pattern.blocks(), 5}, *executor);
                 },
                 [&] { layer.grad_w<float>(q.view(), s.view(), gradients); }});
    report.at_most("growth by samples, factor 2, by a GradW pass, 4096 x 4096, 0.02",
                   sampled[0] / sampled[1], 3);
  }
}

void value_bars(Report& report) {
  constexpr std::int64_t kSide = 4096;
  const auto executor = sequential();
  const auto pattern = sparse::random_pattern(kSide, kSide, {}, 0.1, 3);
  const std::vector<float> gradients = pattern.values;
  std::vector<float> values = pattern.values, plain = values, moment(values.size());
  const train::Optimiser optimiser{.rule = train::TorchSgd{0.01, 0.9}, .weight_decay = 2e-4};
  auto state = train::make_value_state<float>(optimiser, std::ssize(values));
  const auto times =
      medians({[&] { train::step<float>(optimiser, values, gradients, state, *executor); },
               [&] { plain_momentum_step(plain, gradients, moment); }});
  report.at_most("train::step, momentum, 1.68 million values, by a plain -O3 loop",
                 times[0] / times[1], 1.3);
  const Problem problem{
      .size = {1, kSide, kSide, 128}, .density = 0.1, .data_type = DataType::Float, .grad_a = true};
  host::HostLayer layer(problem, host::read_host_cpu(), *executor);
  layer.set_weights(pattern);
  const auto s = random_matrix<float>(kSide, 128, 1);
  Matrix<float> q(kSide, 128);
  const auto passes = medians(
      {[&] { layer.set_values(values); }, [&] { layer.forward<float>(s.view(), q.view()); }});
  report.at_most("set_values, Fwd and GradA, 4096 x 4096, 0.1, by a Fwd pass",
                 passes[0] / passes[1], 0.5);
}

void thread_bars(const train::DataSet& data, Report& report) {
  struct Bar {
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> blocks;
    double at_least;
  };
  for (const Bar& bar : {Bar{kSmall, {1}, 1.5}, Bar{kLarge, {1, 16}, 1.7}}) {
    double product = 1;
    for (const std::int64_t block : bar.blocks) {
      Training one(data, shape_of(bar.sizes, 0.1, block), train::Static{}, 100, make_executor(1)),
          two(data, shape_of(bar.sizes, 0.1, block), train::Static{}, 100, make_executor(2));
      std::vector<double> ratios;
      const int pairs = bar.sizes.size() == 3 ? 60 : 15;
      for (int i = 0; i < pairs; ++i) {
        const double alone = one.step_seconds(3, Clock::Wall);
        ratios.push_back(alone / two.step_seconds(3, Clock::Wall));
      }
      product *= std::pow(median(ratios), 1.0 / double(bar.blocks.size()));
    }
    report.at_least(fmt::format("{}: one thread by two",
                                bar.sizes.size() == 3 ? "784-1024-10" : "784-4096-4096-10"),
                    product, bar.at_least);
  }
}

}  // namespace

const std::vector<SpeedPart>& speed_parts() {
  static const std::vector<SpeedPart> parts = {
      {"values", [](const train::DataSet&, Report& report) { value_bars(report); }},
      {"growth", [](const train::DataSet&, Report& report) { growth_bars(report); }},
      {"rewire", rewire_bars},
      {"top-k", top_k_bars},
      {"step", step_bars},
      {"threads", thread_bars}};
  return parts;
}

}  // namespace tessera::bench
