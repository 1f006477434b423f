#include "tessera/runtime/internal/network_loss.hpp"

#include "tessera/codelets/cost/network_cycles.hpp"
#include "tessera/runtime/internal/home_buckets.hpp"

namespace tessera::runtime::internal {
namespace {

using device::SlotKind;

constexpr std::int64_t kLabelBytes = sizeof(std::int32_t);

}  // namespace

NetworkLoss::NetworkLoss(codelets::Loss loss, const NetworkLayerState& last, TileProgram& program)
    : kind_(loss),
      last_(last),
      program_(program),
      home_(tensor_home(planner::column_home(last.problem.size.x, last.problem.size.z,
                                             program.engine().machine().tiles))),
      bring_(program, last.problem.data_type) {
  for (const HomeShare& share : home_.shares) tiles_.push_back(share.tile);
}

void NetworkLoss::declare_load() {
  const bool has_labels = kind_ == codelets::Loss::SoftmaxCrossEntropy;
  wanted_ = home_;
  for (HomeShare& share : wanted_.shares)
    if (has_labels) share.elements = {0, share.width};
  add_slots(program_, wanted_, has_labels ? "labels" : "targets",
            has_labels ? kLabelBytes : last_.element());
  program_.step(NodeKind::Load, {}, {{}, {wanted_.buffer}}, [this] { load(); });
}

void NetworkLoss::declare() {
  add_slots(program_, home_, "outputs and their gradients", last_.element());
  loss_buffer_ = program_.add_buffer("loss");
  for (const TileId tile : tiles_)
    losses_.push_back(program_.add_slot(loss_buffer_, tile, 1, sizeof(float), SlotKind::Owned));
  hand_over(program_, last_.out, home_, bring_);
  program_.compute(Phase::Loss, {{home_.buffer, wanted_.buffer}, {home_.buffer, loss_buffer_}},
                   tiles_, [this](const device::Tile& tile) { return compute(tile); });
  program_.step(NodeKind::Collect, {}, {{loss_buffer_}, {}}, [this] { collect(); });
}

void NetworkLoss::load() {
  device::Engine& engine = program_.engine();
  if (kind_ == codelets::Loss::MeanSquaredError)
    return load_matrix(engine, wanted_, last_.problem.data_type, batch_->targets);
  for (const HomeShare& share : wanted_.shares)
    engine.load(share.slot,
                rows_at(batch_->labels.data() + share.first_col, share.width, kLabelBytes));
}

Cycles NetworkLoss::compute(const device::Tile& tile) const {
  const auto i = std::size_t(tile.id().value);  // the shares are on the first tiles
  const codelets::LossPart part{rows(), home_.shares[i].width, home_.cols};
  std::byte* outputs = tile.view(home_.shares[i].slot).data;
  const std::byte* wanted = tile.view(wanted_.shares[i].slot).data;
  auto* loss = reinterpret_cast<float*>(tile.view(losses_[i]).data);
  with_type(last_.problem.data_type, [&]<class T>(T) {
    auto* values = reinterpret_cast<T*>(outputs);
    *loss = kind_ == codelets::Loss::SoftmaxCrossEntropy
                ? codelets::softmax_cross_entropy(
                      part, reinterpret_cast<const std::int32_t*>(wanted), values)
                : codelets::mean_squared_error(part, reinterpret_cast<const T*>(wanted), values);
  });
  return codelets::loss_cycles(part, kind_, last_.problem.data_type,
                               program_.engine().machine().workers);
}

void NetworkLoss::collect() {
  double sum = 0;
  for (const device::SlotId slot : losses_)
    sum += double(*reinterpret_cast<const float*>(program_.engine().view(slot).data));
  loss_ = float(sum);
}

}  // namespace tessera::runtime::internal
