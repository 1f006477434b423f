#include "tessera/bench/train/accuracy.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <map>

namespace tessera::bench {
namespace {

using train::Distribution;
using train::Method;

train::NetworkOptions wide(double density, BlockShape block = {}) {
  return {.sizes = {784, 1024, 10}, .density = density, .block = block};
}

// The narrow networks, in which methods differ.
TrainCase narrow(const std::string& name, std::vector<std::int64_t> sizes,
                 Distribution distribution, const Method& method) {
  return {.name = name,
          .network = {.sizes = std::move(sizes), .density = 0.005, .distribution = distribution},
          .method = method,
          .epochs = 20,
          .seeds = 5,
          .every = 50,
          .fraction = 0.5};
}

std::vector<TrainCase> make_cases() {
  const Method fixed = train::Static{}, set = train::Set{}, rigl = train::RigL{},
               sampled = train::Sampled{};
  std::vector<TrainCase> cases = {{"dense", wide(1), fixed},
                                  {"rigl 0.1", wide(0.1), rigl},
                                  {"rigl 0.05", wide(0.05), rigl},
                                  {"rigl 0.02", wide(0.02), rigl},
                                  {"static 0.02", wide(0.02), fixed},
                                  {"sampled 0.02", wide(0.02), sampled},
                                  {"rigl block 16 0.1", wide(0.1, {16, 16}), rigl},
                                  {"rigl block 16 0.02", wide(0.02, {16, 16}), rigl}};
  for (const auto& [name, method] : std::map<std::string, Method>{
           {"static", fixed}, {"set", set}, {"rigl", rigl}, {"sampled", sampled}}) {
    cases.push_back(
        narrow(name + " 512-512", {784, 512, 512, 10}, Distribution::ErdosRenyi, method));
    cases.push_back(narrow(name + " 300-100", {784, 300, 100, 10}, Distribution::Uniform, method));
  }
  return cases;
}

}  // namespace

const std::vector<TrainCase>& train_cases() {
  static const std::vector<TrainCase> cases = make_cases();
  return cases;
}

double test_accuracy(const TrainCase& one, const train::DataSet& data, std::uint64_t seed,
                     Executor& executor) {
  train::NetworkOptions shape = one.network;
  shape.seed = seed;
  train::Network network(shape, train::host_layers(executor), executor);
  const std::int64_t steps = one.epochs * (data.training.count() / shape.batch);
  train::TrainOptions options = train::usual_options(one.method, steps);
  options.schedule.every = one.every;
  options.schedule.fraction = one.fraction;
  options.seed = seed;
  train::Trainer trainer(network, data, options);
  while (std::ssize(trainer.report().epochs) < one.epochs) trainer.epoch();
  return 100 * trainer.report().epochs.back().test_accuracy;
}

void accuracy_bars(const train::DataSet& data, Executor& executor, Report& report) {
  std::map<std::string, double> mean;
  for (const TrainCase& one : train_cases()) {
    for (std::int64_t seed = 1; seed <= one.seeds; ++seed)
      mean[one.name] += test_accuracy(one, data, std::uint64_t(seed), executor) / double(one.seeds);
    report.tell(one.name + ", test accuracy in %", mean[one.name]);
  }
  const auto above = [&](const std::string& better, const std::string& worse, double bar) {
    report.at_least(better + " above " + worse + ", points", mean[better] - mean[worse], bar);
  };
  report.at_least("dense", mean["dense"], 89.7);
  report.at_least("rigl 0.1", mean["rigl 0.1"], 89.7);
  report.at_most("dense above rigl 0.1, points", mean["dense"] - mean["rigl 0.1"], 0.20);
  report.at_least("rigl 0.05", mean["rigl 0.05"], 89.6);
  report.at_least("rigl 0.02", mean["rigl 0.02"], 89.25);
  above("rigl 0.02", "static 0.02", 0.30);
  report.at_least("rigl block 16 0.1", mean["rigl block 16 0.1"], 89.9);
  report.at_least("rigl block 16 0.02", mean["rigl block 16 0.02"], 88.8);
  report.at_least("rigl 512-512", mean["rigl 512-512"], 85.8);
  above("rigl 512-512", "static 512-512", 2.8);
  above("set 512-512", "static 512-512", 2.3);
  above("rigl 512-512", "set 512-512", 0);
  report.at_least("rigl 300-100", mean["rigl 300-100"], 84.4);
  above("rigl 300-100", "static 300-100", 2.0);
  above("sampled 512-512", "rigl 512-512", -0.2);
  above("sampled 300-100", "rigl 300-100", -0.2);
  above("sampled 0.02", "rigl 0.02", -0.2);
}

}  // namespace tessera::bench
