#include "tessera/runtime/internal/network_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/sparse/checked.hpp"

namespace tessera::runtime {

using internal::NetworkLayerState;
using internal::TensorHome;

Network::State::State(const NetworkSpec& s, std::span<const planner::Plan> plans,
                      const device::Machine& machine, device::ExchangeMode mode, Executor& executor)
    : spec(s), program(s.loss ? "training step" : "network"), engine(machine, mode, executor) {
  const internal::NetworkMachine shared{program, engine, executor};
  const std::vector<Problem> problems = problems_of(spec);
  const std::int64_t states = trains() ? codelets::states_of(spec.update.kind) : 0;
  for (std::size_t l = 0; l < plans.size(); ++l) {
    layers.emplace_back(spec.layers[l], problems[l], plans[l], shared, states);
    if (trains()) updates.emplace_back(layers.back(), spec.update, shared);
  }
  if (trains()) loss.emplace(*spec.loss, layers.back(), shared);
  declare_loads();
  declare_forward();
  if (trains()) declare_backward();
  for (NetworkLayerState& layer : layers) layer.complete_load();
  program.finish();
  for (NetworkLayerState& layer : layers) layer.add_slots();
  for (internal::NetworkUpdate& update : updates) update.add_slots();
  if (loss) loss->add_slots();
  program.seal(engine);
  for (NetworkLayerState& layer : layers) layer.prepare();
  for (internal::NetworkUpdate& update : updates) update.prepare();
  if (loss) loss->prepare();
  for (internal::HandOver& step : hand_overs_) step.prepare();
}

void Network::State::begin(NetworkWork work, std::size_t layer) {
  program.begin_scope(fmt::format("layer {} {}", layer + 1, to_string(work)));
  parts.push_back({work, std::int64_t(layer)});
}

void Network::State::declare_loads() {
  for (std::size_t l = 0; l < layers.size(); ++l) {
    begin(NetworkWork::Parameters, l);
    layers[l].declare_resident();
    layers[l].declare_load();
    if (!trains()) continue;
    updates[l].declare_resident();
    updates[l].declare_load();
  }
  if (loss) loss->declare_load();
  program.step(NodeKind::Load, {}, {{}, {layers.front().in.buffer}}, [this] { load_inputs(); });
}

void Network::State::hand_over(const TensorHome& from, const TensorHome& to) {
  hand_overs_.emplace_back(program, engine, spec.data_type).declare(from, to);
}

void Network::State::declare_forward() {
  for (std::size_t l = 0; l < layers.size(); ++l) {
    begin(NetworkWork::Fwd, l);
    layers[l].declare_fwd();
    if (layers[l].has_activation_step()) begin(NetworkWork::Activate, l);
    layers[l].declare_activation();
    if (l + 1 == layers.size()) break;
    begin(NetworkWork::HandOver, l);
    hand_over(layers[l].out, layers[l + 1].in);
  }
  if (trains()) return;
  program.step(NodeKind::Collect, {}, {{layers.back().out.buffer}, {}},
               [this] { collect_outputs(); });
}

// The gradient of a result is in `from` and goes to the operand of GradA and GradW.
void Network::State::declare_gradient_of(std::size_t l, const TensorHome& from) {
  NetworkLayerState& layer = layers[l];
  begin(NetworkWork::HandOver, l);
  if (!layer.has_derivative()) return hand_over(from, layer.q_grad);
  layer.out_grad.buffer = program.add_buffer("gradient of the result");
  hand_over(from, layer.out_grad);
  begin(NetworkWork::Derivative, l);
  layer.declare_derivative();
  begin(NetworkWork::HandOver, l);
  hand_over(layer.out_grad, layer.q_grad);
}

void Network::State::declare_backward() {
  begin(NetworkWork::Loss, layers.size() - 1);
  loss->declare();
  loss->declare_collect();
  for (std::size_t l = layers.size(); l-- > 0;) {
    const bool is_last = l + 1 == layers.size();
    declare_gradient_of(l, is_last ? loss->home() : layers[l + 1].in_grad);
    if (l > 0) {
      begin(NetworkWork::GradA, l);
      layers[l].declare_grad_a();
      layers[l].in_grad.buffer = layers[l].grad_a_result();
    }
    if (layers[l].has_two_layouts()) {
      begin(NetworkWork::HandOver, l);
      hand_over(layers[l].again_from(), layers[l].again);
    }
    begin(NetworkWork::GradW, l);
    layers[l].declare_grad_w();
    begin(NetworkWork::Update, l);
    updates[l].declare();
    if (!layers[l].has_two_layouts()) continue;
    begin(NetworkWork::Rehome, l);
    layers[l].declare_rehome();
  }
  for (std::size_t l = 0; l < layers.size(); ++l) {
    layers[l].declare_collect();
    updates[l].declare_collect();
  }
}

NetworkLayerState& Network::State::at(std::int64_t layer) {
  if (layer < 0 || layer >= std::ssize(layers))
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("network: layer {} does not exist; legal: 0 to {}", layer, layers.size() - 1));
  return layers[std::size_t(layer)];
}

std::optional<partitioner::Misfit> Network::State::set_weights(NetworkLayerState& layer,
                                                               const sparse::Csr<float>& weights) {
  const auto call = caller_.enter("set_weights");
  return layer.set_weights(sparse::checked(weights));
}

sparse::Csr<float> Network::State::weights_of(NetworkLayerState& layer) const {
  if (!layer.has_weights())
    throw Error(ErrorCode::InvalidArgument, "network: call set_weights first");
  return layer.current_weights();
}

void Network::State::check_batch(const NetworkBatch& batch) const {
  const auto refuse = [](const std::string& text) {
    throw Error(ErrorCode::InvalidArgument, "network: " + text);
  };
  const auto check_matrix = [&](const char* name, MatrixView<const float> view, std::int64_t rows) {
    if (view.rows != rows || view.cols != spec.batch)
      refuse(fmt::format("{} are {} x {}; this network needs {} x {}", name, view.rows, view.cols,
                         rows, spec.batch));
  };
  for (std::size_t l = 0; l < layers.size(); ++l)
    if (!layers[l].has_weights())
      refuse(fmt::format("layer {} has no weights; call set_weights first", l + 1));
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

void Network::State::load_inputs() {
  const NetworkLayerState& first = layers.front();
  const Dims& size = first.grid().size;
  with_type(spec.data_type, [&](auto zero) {
    using T = decltype(zero);
    inputs_.assign(std::size_t(size.y * size.z) * sizeof(T), std::byte(0));
    auto* to = reinterpret_cast<T*>(inputs_.data());
    for (std::int64_t row = 0; row < batch_->inputs.rows; ++row)
      for (std::int64_t col = 0; col < batch_->inputs.cols; ++col)
        to[row * size.z + col] = T(batch_->inputs(row, col));
  });
  const std::int64_t row_bytes = size.z * first.element();
  for (const internal::HomeShare& share : first.in.shares)
    engine.load(share.slot,
                {inputs_.data() + share.first_row * row_bytes + share.first_col * first.element(),
                 share.elements.size() / share.width, share.width * first.element(), row_bytes});
}

void Network::State::collect_outputs() {
  const TensorHome& home = layers.back().out;
  outputs = Matrix<float>(home.rows, home.cols);
  with_type(spec.data_type, [&](auto zero) {
    using T = decltype(zero);
    for (const internal::HomeShare& share : home.shares) {
      const auto* values = reinterpret_cast<const T*>(engine.view(share.slot).data);
      for (std::int64_t e = share.elements.begin; e < share.elements.end; ++e)
        if (share.row_of(e) < home.rows && share.col_of(e) < home.cols)
          outputs(share.row_of(e), share.col_of(e)) = float(values[e - share.elements.begin]);
    }
  });
}

namespace {

void check_options(const RunOptions& options) {
  if (options.self_check != nullptr || options.repair || options.fault || options.struck != nullptr)
    throw Error(ErrorCode::InvalidArgument,
                "network: self-checks, repair and faults are for single layers; run a layer alone "
                "(FullyConnected)");
}

}  // namespace

bool Network::State::run(const NetworkBatch& batch, const RunOptions& options, NetworkCost& cost) {
  check_options(options);
  const auto call = caller_.enter("run");
  batch_ = &batch;
  if (loss) loss->set_batch(batch);
  for (std::size_t l = 0; l < updates.size(); ++l)
    updates[l].set_step(layers[l].parameters.steps + 1);
  const bool finished = program.run(engine, options);
  cost.ledger = engine.ledger();
  cost.part_of.clear();
  for (const int node : program.ran()) cost.part_of.push_back(program.scope_of(node));
  if (!finished) return false;
  if (!trains()) return true;
  for (NetworkLayerState& layer : layers) {
    std::swap(layer.parameters, layer.after);
    ++layer.parameters.steps;
  }
  return true;
}

}  // namespace tessera::runtime
