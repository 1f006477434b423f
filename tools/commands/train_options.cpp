#include "tessera/tools/commands/train_options.hpp"

#include "tessera/base/named.hpp"
#include "tessera/tools/options/inputs.hpp"
#include "tessera/train/network_file.hpp"

namespace tessera::tools {
namespace {

train::NetworkOptions network_in_file(const TrainArguments& a) {
  train::NetworkOptions options{.seed = std::uint64_t(a.seed),
                                .min_per_neuron = a.method == "dense" ? 0 : a.min_per_neuron,
                                .constant_fan_in = a.constant_fan_in,
                                .spec = a.network->spec};
  if (a.method != "dense") return options;
  for (planner::NetworkLayer& layer : options.spec->layers) {
    layer.block = {};
    layer.density = 1;
  }
  return options;
}

train::Optimiser optimiser_of(const TrainArguments& a) {
  if (a.network) return a.network->spec.optimiser;
  return a.optimiser == "adam" ? train::Optimiser{.rule = train::Adam{}}
                               : train::TrainOptions().optimiser;
}

}  // namespace

TrainArguments with_network_file(TrainArguments a) {
  if (a.file.empty()) return a;
  a.network = train::read_network(load_text(a.file), a.file);
  const planner::NetworkSpec& spec = a.network->spec;
  a.layers = {spec.layers.front().inputs};
  for (const planner::NetworkLayer& layer : spec.layers) a.layers.push_back(layer.outputs);
  a.batch = spec.batch;
  a.data_type = spec.data_type;
  a.optimiser = codelets::name_of(spec.optimiser);
  codelets::Rule rule = spec.optimiser.rule;
  if (!a.gives_rate) a.learning_rate = *codelets::numbers_of(rule).front().value;
  return a;
}

train::NetworkOptions network_of(const TrainArguments& a) {
  if (a.network) return network_in_file(a);
  return {.sizes = a.layers,
          .density = a.method == "dense"          ? 1
                     : a.density_schedule.empty() ? a.density
                                                  : a.first_density,
          .distribution = named(a.distribution, train::kDistributions, "--distribution"),
          .block = {a.block, a.block},
          .batch = a.batch,
          .seed = std::uint64_t(a.seed),
          .min_per_neuron = a.method == "dense" ? 0 : a.min_per_neuron,
          .constant_fan_in = a.constant_fan_in,
          .density_changes = a.method != "dense" && !a.density_schedule.empty(),
          .data_type = a.data_type};
}

std::vector<sparse::Csr<float>> weights_before(const TrainArguments& a) {
  std::vector<sparse::Csr<float>> weights = train::first_weights(network_of(a));
  if (!a.network || a.method == "dense") return weights;
  for (std::size_t l = 0; l < weights.size(); ++l)
    if (!a.network->weights[l].empty())
      weights[l] = train::weights_of(*a.network, std::int64_t(l), std::uint64_t(a.seed));
  return weights;
}

train::TrainOptions options_of(const TrainArguments& a, const train::DataSet& data) {
  const std::int64_t batches = data.training.count() / a.batch;
  const bool is_dense = a.method == "dense";
  train::TrainOptions options = train::usual_options(
      train::parse_method(is_dense ? "static" : a.method, {.search = a.search, .factor = a.factor}),
      a.epochs * batches, a.learning_rate);
  options.schedule.every = a.every;
  options.schedule.fraction = a.fraction;
  options.seed = std::uint64_t(a.seed);
  options.optimiser = optimiser_of(a);
  if (!is_dense && !a.density_schedule.empty())
    options.density = train::usual_densities(
        a.first_density, a.density, a.epochs * batches,
        named(a.density_schedule, train::kDensityCurves, "--density-schedule"));
  return options;
}

planner::NetworkSpec spec_in(const TrainArguments& a) {
  planner::NetworkSpec spec = spec_of(network_of(a));
  spec.optimiser = codelets::with_learning_rate(optimiser_of(a), a.learning_rate);
  return spec;
}

}  // namespace tessera::tools
