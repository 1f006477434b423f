#include "tessera/bench/train/searches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/bench/timing.hpp"
#include "tessera/host/gradient_panels.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::bench {
namespace {

constexpr std::int64_t kBatch = 4096, kFactor = std::int64_t(train::TopK{}.factor);
constexpr double kDensity = 1.0 / 64;

// One search, by each of the two ways.
struct Case {
  const sparse::Csr<float>& taken;
  train::GradientBatch batch;
  Executor& executor;

  std::vector<sparse::BlockAt> exact() const {
    return train::exact_gradients({taken, {&batch, 1}, taken.blocks(), train::BlockScore::Sum},
                                  executor);
  }
  std::vector<sparse::BlockAt> shortlist() const {
    const std::int64_t k = taken.blocks();
    return train::shortlisted_gradients({taken, {&batch, 1}, k, train::BlockScore::Sum},
                                        {kFactor * k, 5}, executor);
  }
  // Returns the share of the exact places that the shortlist finds.
  double recall() const {
    const auto all = exact(), found = shortlist();
    std::vector<sparse::BlockAt> both;
    std::set_intersection(all.begin(), all.end(), found.begin(), found.end(),
                          std::back_inserter(both));
    return double(both.size()) / double(all.size());
  }
};

// The three passes of a layer with the weights of a case.
struct Passes {
  host::HostLayer layer;
  Matrix<float> q, s_grad;
  std::vector<float> gradients;

  explicit Passes(const Case& one)
      : layer({.size = {1, one.taken.rows, one.taken.cols, kBatch},
               .density = kDensity,
               .data_type = DataType::Float,
               .grad_a = true,
               .grad_w = true},
              host::read_host_cpu(), one.executor),
        q(one.taken.rows, kBatch),
        s_grad(one.taken.cols, kBatch),
        gradients(one.taken.values.size()) {
    layer.set_weights(one.taken);
  }
  void run(const train::GradientBatch& batch) {
    layer.forward<float>(batch.s, q.view());
    layer.grad_a<float>(batch.q_grad, s_grad.view());
    layer.grad_w<float>(batch.q_grad, batch.s, gradients);
  }
};

// Least times, which do not depend on the numbers.
void time_bars(Report& report) {
  constexpr double kSteps = 100;  // from one search to the next
  const auto executor = sequential();
  for (const auto& [outputs, inputs] :
       {std::pair<std::int64_t, std::int64_t>{1024, 1024}, {4096, 1024}, {1024, 4096}}) {
    const auto q = random_matrix<float>(outputs, kBatch, 1);
    const auto s = random_matrix<float>(inputs, kBatch, 2);
    const auto pattern = sparse::random_pattern(outputs, inputs, {}, kDensity, 3);
    const Case one{pattern, {q.view(), s.view()}, *executor};
    Passes passes(one);
    const auto times =
        leasts({[&] { one.exact(); },
                [&] {
                  host::for_each_gradient_panel(host::gradient_panel_size(), {&one.batch, 1},
                                                *executor, [](const auto&, const auto&) {});
                },
                [&] { one.shortlist(); }, [&] { passes.run(one.batch); }},
               7);
    const std::string name = fmt::format("{} x {}, 1/64, {} rows", outputs, inputs, kBatch);
    report.at_most(name + ": exact search of top-k by the dense product", times[0] / times[1], 1.1);
    report.at_most(name + ": shortlist by the exact search", times[2] / times[0], 0.35);
    report.at_most(name + ": exact search every 100 steps by their passes",
                   times[0] / (kSteps * times[3]), 0.09);
    report.at_most(name + ": shortlist every 100 steps by their passes",
                   times[2] / (kSteps * times[3]), 0.03);
  }
}

// The gradients of both hidden layers after some steps of Adam with top-k every ten.
void recall_bars(const train::DataSet& data, std::int64_t width, std::uint64_t seed,
                 Report& report) {
  constexpr std::int64_t kEnd = 300;
  const auto executor = sequential();
  train::Network<> network(
      {.sizes = {784, width, width, 10}, .density = kDensity, .batch = kBatch, .seed = seed},
      train::host_layers(*executor), *executor);
  train::TrainOptions options = train::usual_options(train::TopK{}, kEnd, 0.001);
  options.schedule = {.end = kEnd, .every = 10};
  options.optimiser = {.rule = train::Adam{}};
  options.seed = seed;
  train::Trainer trainer(network, data, options);
  for (const std::int64_t step : {40, 150, 300}) {
    while (trainer.report().steps < step) trainer.step();
    for (std::int64_t i = 0; i < 2; ++i) {
      const Case one{network.weights(i), {network.output_gradient(i), network.input(i)}, *executor};
      report.at_least(
          fmt::format("recall of the shortlist, 784-{0}-{0}-10, seed {1}, step {2}, layer {3}",
                      width, seed, step, i + 1),
          one.recall(), 0.95);
    }
  }
}

}  // namespace

void top_k_bars(const train::DataSet& data, Report& report) {
  time_bars(report);
  for (const std::uint64_t seed : {1, 2}) recall_bars(data, 512, seed, report);
  recall_bars(data, 1024, 1, report);
}

}  // namespace tessera::bench
