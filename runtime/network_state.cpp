#include "tessera/runtime/internal/network_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/runtime/internal/network_results.hpp"
#include "tessera/runtime/loss_check.hpp"

namespace tessera::runtime {

using internal::NetworkLayerState;

Network::State::State(const NetworkSpec& s, std::span<const planner::Plan> plans,
                      const device::Machine& machine, device::ExchangeMode mode, Executor& executor)
    : spec(s), program(s.loss ? "training step" : "network", machine, mode, executor) {
  make_layers(plans, executor);
  if (trains()) {
    biases.emplace(layers, spec.optimiser, program);
    loss.emplace(*spec.loss, *layers.back(), program);
  }
  connect(plans);
  declare_loads();
  declare_forward();
  if (trains()) declare_backward();
  for (const auto& layer : layers) layer->complete_load();
  seal();
}

// A network has a remedy of its own if a tile is too full.
void Network::State::seal() {
  try {
    program.seal();
  } catch (const Error& error) {
    const bool may_recompute = trains() && layers.size() > 1;
    if (error.code() != ErrorCode::LimitExceeded || !may_recompute) throw;
    throw Error(error.code(), fmt::format("{}; a layer can also compute its results again instead "
                                          "of keeping them (\"recompute\": true, --recompute)",
                                          error.what()));
  }
}

void Network::State::make_layers(std::span<const planner::Plan> plans, Executor& executor) {
  const codelets::Optimiser* const optimiser = trains() ? &spec.optimiser : nullptr;
  for (std::size_t l = 0; l < plans.size(); ++l) {
    const NetworkLayer& layer = spec.layers[l];
    const Problem problem = planner::problem_of(spec, std::int64_t(l));
    if (layer.dense)
      layers.push_back(std::make_unique<internal::NetworkDenseLayer>(layer, problem, plans[l],
                                                                     optimiser, program));
    else
      layers.push_back(std::make_unique<internal::NetworkSparseLayer>(
          layer, problem, plans[l], optimiser, program, executor));
  }
}

// Tells each layer where its operands are. The gradient of a result is where GradA of the next
// layer adds it up, and what its derivative needs comes there with GradA's operand.
void Network::State::connect(std::span<const planner::Plan> plans) {
  const std::int64_t tiles = program.engine().machine().tiles;
  own_.resize(layers.size());
  for (std::size_t l = 0; l < layers.size(); ++l) {
    NetworkLayerState& layer = *layers[l];
    const Placement operands = layer.layer.operands;
    if (l == 0 || layer.has_own_homes())
      (l == 0 ? inputs_ : own_[l].s) =
          internal::tensor_home(planner::home_of_s(layer.problem, plans[l], operands, tiles));
    if (layer.has_own_homes() && trains())
      own_[l].dq =
          internal::tensor_home(planner::home_of_dq(layer.problem, plans[l], operands, tiles));
    if (l == 0)
      layer.set_input(inputs_, inputs_);
    else if (layer.has_own_homes())
      layer.set_input(own_[l].s, own_[l].s);
    else
      layer.set_input(layers[l - 1]->out, layers[l - 1]->out_in_backward());
    if (!trains()) continue;
    connect_gradient(l);
    layer.set_dq(layer.has_own_homes() ? own_[l].dq : layer.gradient());
  }
}

void Network::State::connect_gradient(std::size_t l) {
  NetworkLayerState& layer = *layers[l];
  const bool needs_sums = layer.layer.activation.kind != codelets::Activation::None;
  if (l + 1 == layers.size()) {
    layer.set_gradient(layer.has_activation_step() ? layer.out_grad : loss->home(),
                       needs_sums ? &layer.sums : nullptr);
    return;
  }
  NetworkLayerState& next = *layers[l + 1];
  layer.set_gradient(next.in_grad, needs_sums ? &next.kept_before : nullptr);
  if (needs_sums) next.bring_with_grad_a(layer.sums_in_backward());
}

// Brings an operand to the home that the layer asks for.
void Network::State::hand_over(std::size_t l, const internal::TensorHome& from,
                               internal::TensorHome& to, std::optional<internal::Fetches>& bring) {
  begin(NetworkWork::HandOver, l);
  internal::add_slots(program, to, "operand at its home", bytes_of(spec.data_type));
  internal::hand_over(program, from, to, bring.emplace(program, spec.data_type));
}

void Network::State::begin(NetworkWork work, std::size_t layer) {
  program.begin_scope(fmt::format("layer {} {}", layer + 1, to_string(work)));
  parts.push_back({work, std::int64_t(layer)});
}

void Network::State::declare_loads() {
  for (std::size_t l = 0; l < layers.size(); ++l) {
    begin(NetworkWork::Parameters, l);
    layers[l]->declare_resident();
    layers[l]->declare_load();
    if (biases) biases->declare_resident(l);
  }
  if (loss) loss->declare_load();
  internal::add_slots(program, inputs_, "inputs", bytes_of(spec.data_type));
  program.step(NodeKind::Load, {}, {{}, {inputs_.buffer}}, [this] {
    internal::load_matrix(program.engine(), inputs_, spec.data_type, batch_->inputs);
  });
}

void Network::State::declare_forward() {
  constexpr auto kFirst = NetworkLayerState::Turn::First;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (l > 0 && layers[l]->has_own_homes())
      hand_over(l, layers[l - 1]->out, own_[l].s, own_[l].bring_s);
    begin(NetworkWork::Fwd, l);
    layers[l]->declare_fwd(kFirst);
    if (layers[l]->has_activation_step()) begin(NetworkWork::Activate, l);
    layers[l]->declare_activation(kFirst);
  }
  if (trains()) return;
  program.step(NodeKind::Collect, {}, {{layers.back()->out.buffer}, {}}, [this] {
    const internal::TensorHome& home = layers.back()->out;
    outputs = Matrix<float>(home.rows, home.cols);
    internal::collect_matrix(program.engine(), home, spec.data_type, outputs.view());
  });
}

// The forward pass of a layer that recomputes runs again in front of GradA of the next layer, which
// is the first that reads its result.
void Network::State::declare_again(std::size_t l) {
  begin(NetworkWork::Recompute, l);
  layers[l]->declare_fwd(NetworkLayerState::Turn::Again);
  layers[l]->declare_activation(NetworkLayerState::Turn::Again);
}

// If the last layer has a derivative, the gradient goes from the columns of the loss to the tiles
// that hold the result.
void Network::State::declare_loss() {
  NetworkLayerState& last = *layers.back();
  begin(NetworkWork::Loss, layers.size() - 1);
  loss->declare();
  if (!last.has_activation_step()) return;
  begin(NetworkWork::HandOver, layers.size() - 1);
  internal::add_slots(program, last.out_grad, "gradient of the result", last.element());
  internal::hand_over(program, loss->home(), last.out_grad,
                      back_from_loss_.emplace(program, spec.data_type));
}

void Network::State::declare_backward() {
  declare_loss();
  for (std::size_t l = layers.size(); l-- > 0;) {
    if (layers[l]->has_activation_step()) {
      begin(NetworkWork::Derivative, l);
      layers[l]->declare_derivative();
    }
    if (layers[l]->has_own_homes())
      hand_over(l, layers[l]->gradient(), own_[l].dq, own_[l].bring_dq);
    if (l > 0) {
      if (layers[l - 1]->recomputes()) declare_again(l - 1);
      begin(NetworkWork::GradA, l);
      layers[l]->declare_grad_a();
    }
    begin(NetworkWork::GradW, l);
    layers[l]->declare_grad_w();
    begin(NetworkWork::Update, l);
    layers[l]->declare_update();
    if (!layers[l]->has_two_layouts()) continue;
    begin(NetworkWork::Rehome, l);
    layers[l]->declare_rehome();
  }
  if (!biases->empty()) {
    begin(NetworkWork::UpdateBiases, 0);
    biases->declare();
  }
  for (const auto& layer : layers) layer->declare_collect();
  biases->declare_collect();
}

NetworkLayerState& Network::State::at(std::int64_t layer) {
  if (layer < 0 || layer >= std::ssize(layers))
    throw_invalid(
        fmt::format("network: layer {} does not exist; legal: 0 to {}", layer, layers.size() - 1));
  return *layers[std::size_t(layer)];
}

void check_batch(const NetworkSpec& spec, const NetworkBatch& batch) {
  const auto refuse = [](const std::string& text) { throw_invalid("network: " + text); };
  const auto check_matrix = [&](const char* name, MatrixView<const float> view, std::int64_t rows) {
    if (view.rows != rows || view.cols != spec.batch)
      refuse(fmt::format("{} are {} x {}; this network needs {} x {}", name, view.rows, view.cols,
                         rows, spec.batch));
  };
  check_matrix("inputs", batch.inputs, spec.layers.front().inputs);
  const std::int64_t classes = spec.layers.back().outputs;
  if (spec.loss == codelets::Loss::MeanSquaredError)
    check_matrix("targets", batch.targets, classes);
  if (spec.loss != codelets::Loss::SoftmaxCrossEntropy) return;
  if (std::ssize(batch.labels) != spec.batch)
    refuse(fmt::format("there are {} labels; the batch has {} columns", batch.labels.size(),
                       spec.batch));
  for (std::size_t i = 0; i < batch.labels.size(); ++i)
    if (batch.labels[i] < 0 || batch.labels[i] >= classes)
      refuse(fmt::format("label {} is {}; legal: 0 to {}", i, batch.labels[i], classes - 1));
}

void Network::State::check_weights() const {
  for (std::size_t l = 0; l < layers.size(); ++l)
    if (!layers[l]->has_weights())
      throw_invalid(fmt::format("network: layer {} has no weights; call set_weights first", l + 1));
}

namespace {

void check_options(const PassOptions& options) {
  const TileOptions own = tile_options(options);
  if (options.self_check != nullptr || options.repair || own.fault || own.struck != nullptr)
    throw_invalid(
        "network: self-checks, repair and faults are for single layers; run a layer alone "
        "(FullyConnected)");
}

}  // namespace

// Throws if the loss is not finite. The parameters are still those of before the step.
void Network::State::check_loss(const NetworkBatch& batch) const {
  if (std::isfinite(loss->loss())) return;
  std::int64_t step = 0;
  std::vector<internal::PlainLayer> plain;
  for (const auto& layer : layers) {
    step = std::max(step, layer->parameters.steps + 1);
    plain.push_back({layer->current_weights(), layer->parameters.bias});
  }
  refuse_loss(fmt::format("network: the loss of step {}", step), loss->loss(),
              internal::largest_results(spec, plain, batch.inputs));
}

bool Network::State::run(const NetworkBatch& batch, const PassOptions& options, NetworkCost& cost) {
  check_options(options);
  const auto call = caller_.enter("run");
  batch_ = &batch;
  if (loss) loss->set_batch(batch);
  const bool finished = program.run(options, cost.ledger);
  cost.node_of = program.ran();
  cost.part_of.clear();
  for (const int node : program.ran()) cost.part_of.push_back(program.scope_of(node));
  if (!finished) return false;
  if (!trains()) return true;
  check_loss(batch);
  for (const auto& layer : layers) {
    std::swap(layer->parameters, layer->after);
    ++layer->parameters.steps;
  }
  return true;
}

}  // namespace tessera::runtime
