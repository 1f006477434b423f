#include "tessera/train/internal/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "tessera/base/error.hpp"

namespace tessera::train::internal {
namespace {

void check_layers(const planner::NetworkSpec& spec) {
  for (std::size_t l = 0; l < spec.layers.size(); ++l)
    if (spec.layers[l].recompute || spec.layers[l].operands != Placement::AsLeft)
      throw_invalid(
          fmt::format("network: layer {} {}, which resident networks of modelled machines "
                      "do; leave it out here",
                      l + 1,
                      spec.layers[l].recompute ? "recomputes its results"
                                               : "has homes of its own for operands"));
}

[[noreturn]] void refuse_training(const std::string& what) { throw_invalid("training: " + what); }

void check_patterns(const NetworkOptions& network, const TrainOptions& options) {
  const std::string method = name_of(options.method);
  if (network.constant_fan_in && !has_constant_fan_in(options.method))
    refuse_training(
        fmt::format("method {} keeps no constant fan-in; choose set, rigl or prune, or "
                    "leave constant_fan_in out",
                    method));
  if (options.density.has_value() != network.density_changes)
    refuse_training(network.density_changes
                        ? "the network expects densities that change, and there is no schedule"
                        : "there is a schedule of densities; set density_changes of the network");
  if (!options.density) {
    if (std::holds_alternative<Prune>(options.method))
      refuse_training("method prune needs a schedule of densities, which says how much goes");
    return;
  }
  const DensitySchedule& density = *options.density;
  check(density, options.schedule);
  if (std::holds_alternative<Static>(options.method))
    refuse_training("method static changes no density; choose prune, or leave out the schedule");
  if (std::holds_alternative<Prune>(options.method) && density.last > density.first)
    refuse_training(
        fmt::format("method prune adds nothing, and the density rises from {} to {}; "
                    "choose set, rigl, sampled or top-k",
                    density.first, density.last));
  if (density.first != network.density)
    refuse_training(fmt::format("the schedule of densities begins with {} and the network has {}",
                                density.first, network.density));
  blocks_at(network, density.last);  // refuses what layers cannot have
}

// The options of a network may be a file with blocks for each layer.
void check_blocks(const planner::NetworkSpec& spec, const TrainOptions& options) {
  if (!std::holds_alternative<TopK>(options.method)) return;
  for (std::size_t l = 0; l < spec.layers.size(); ++l) {
    const planner::NetworkLayer& layer = spec.layers[l];
    if (layer.block.area() != 1 && (layer.density < 1 || options.density))
      refuse_training(
          fmt::format("method top-k compares weights, and layer {} has blocks of {} x "
                      "{}; choose blocks of 1 x 1, or another method",
                      l + 1, layer.block.rows, layer.block.cols));
  }
}

}  // namespace

void check_network(const planner::NetworkSpec& spec, std::span<const sparse::Csr<float>> weights) {
  check_layers(spec);
  const auto refuse = [](const std::string& what) { throw_invalid("network: " + what); };
  if (weights.size() != spec.layers.size())
    refuse(fmt::format("it has {} layers; weights of {} were given", spec.layers.size(),
                       weights.size()));
  for (std::size_t l = 0; l < weights.size(); ++l) {
    const std::int64_t all = spec.layers[l].outputs * spec.layers[l].inputs;
    if (spec.layers[l].dense && std::ssize(weights[l].values) != all)
      refuse(fmt::format("layer {} is dense and has {} weights; {} were given", l + 1, all,
                         weights[l].values.size()));
  }
}

void check_data_type(DataType type, DataType own, bool is_machine) {
  if (type == own || (is_machine && type == DataType::Half)) return;
  const std::string others = is_machine ? std::string(" or half")
                                        : fmt::format(
                                              " on this computer; give \"data_type\" as "
                                              "{} or train on a modelled machine",
                                              to_string(own));
  throw_invalid(fmt::format("network: the data type is {}; it must be {}{}", to_string(type),
                            to_string(own), others));
}

void check_state(bool fits) {
  if (!fits)
    throw_invalid(
        "the state of the optimiser belongs to another network or optimiser; begin with "
        "first_state() of this network");
}

void check_training(const Network<>& network, const DataSet& data, const TrainOptions& options) {
  check(options.method);
  check(options.schedule);
  check(options.optimiser);
  check(options.rate);
  check_patterns(network.options(), options);
  const planner::NetworkSpec& spec = network.spec();
  check_blocks(spec, options);
  const std::int64_t inputs = spec.layers.front().inputs;
  if (spec.loss != codelets::Loss::SoftmaxCrossEntropy)
    refuse_training("the loss of the network must be softmax-cross-entropy");
  for (const LabelledImages* images : {&data.training, &data.test}) {
    if (images->count() == 0) refuse_training("a part of the data set has no images");
    if (images->features() != inputs)
      refuse_training(fmt::format("images have {} pixels and the network {} inputs",
                                  images->features(), inputs));
    const int most = *std::max_element(images->labels.begin(), images->labels.end());
    if (most >= network.outputs())
      refuse_training(fmt::format("there is a label {} and the network has {} outputs", most,
                                  network.outputs()));
  }
}

}  // namespace tessera::train::internal
