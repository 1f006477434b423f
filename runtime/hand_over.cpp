#include "tessera/runtime/internal/hand_over.hpp"

#include <cstring>

#include "tessera/codelets/cost/vector_cycles.hpp"

namespace tessera::runtime::internal {
namespace {

constexpr Phase kHandOverPhase = Phase::HandOver;

bool has_padding(const TensorHome& home, const HomeShare& share) {
  return TensorHome{home.rows, home.cols, {}, {share}}.is_padded();
}

}  // namespace

void HandOver::declare(const TensorHome& from, const TensorHome& to) {
  from_ = &from;
  to_ = &to;
  if (to.is_padded())
    clear_node_ =
        program_.step(NodeKind::Compute, kHandOverPhase, {{}, {to.buffer}}, [this] { clear(); });
  exchange_node_ = program_.step(NodeKind::Exchange, kHandOverPhase, {{from.buffer}, {to.buffer}},
                                 [this] { engine_.exchange(kHandOverPhase, exchange_); });
}

void HandOver::prepare() {
  exchange_ = engine_.prepare_moves(moves_between(*from_, *to_, bytes_of(type_)));
  program_.set_moves(exchange_node_, exchange_.moved);
  if (clear_node_ < 0) return;
  padded_slots_.resize(std::size_t(engine_.machine().tiles));
  for (const HomeShare& share : to_->shares) {
    if (!has_padding(*to_, share)) continue;
    padded_.push_back(share.tile);
    padded_slots_[std::size_t(share.tile.value)] = share.slot;
  }
  program_.set_tiles(clear_node_, std::ssize(padded_));
}

void HandOver::clear() {
  engine_.compute(kHandOverPhase, padded_, [this](const device::Tile& tile) {
    const device::ByteRows rows = tile.view(padded_slots_[std::size_t(tile.id().value)]);
    for (std::int64_t row = 0; row < rows.rows; ++row)
      std::memset(rows.data + row * rows.stride, 0, std::size_t(rows.row_bytes));
    return codelets::zero_cycles(rows.bytes(), engine_.machine().workers);
  });
}

}  // namespace tessera::runtime::internal
