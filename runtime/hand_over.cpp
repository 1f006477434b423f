#include "tessera/runtime/internal/hand_over.hpp"

#include <algorithm>
#include <cstring>

#include "tessera/codelets/cost/network_cycles.hpp"

namespace tessera::runtime::internal {

Fetches::Padding Fetches::padding_of(const Fetch& fetch, const HomeShare& share) const {
  const planner::HomePadding padding = planner::padding_of(share, fetch.to->rows, fetch.to->cols);
  const std::int64_t element = bytes_of(type_), width = share.width, begin = share.elements.begin;
  Padding bytes{.slot = share.slot,
                .tail = (padding.tail.begin - begin) * element,
                .tail_bytes = padding.tail.size() * element};
  if (fetch.cleared == Cleared::Rows || padding.columns == 0) return bytes;
  bytes.first = (begin / width * width + width - padding.columns - begin) * element;
  bytes.rows = padding.rows;
  bytes.row_bytes = padding.columns * element;
  bytes.stride = width * element;
  return bytes;
}

void Fetches::declare_clear() {
  if (all_.empty()) return;  // gathers bring padding, too
  Uses uses;
  padding_.resize(std::size_t(program_.engine().machine().tiles));
  for (const Fetch& fetch : all_) {
    bool has_padding = false;
    for (const HomeShare& share : fetch.to->shares) {
      const Padding padding = padding_of(fetch, share);
      if (padding.tail_bytes == 0 && padding.rows == 0) continue;
      auto& of_tile = padding_[std::size_t(share.tile.value)];
      if (of_tile.empty()) padded_.push_back(share.tile);
      of_tile.push_back(padding);
      has_padding = true;
    }
    if (has_padding) uses.writes.push_back(fetch.to->buffer);
  }
  if (!uses.writes.empty())
    program_.compute(Phase::HandOver, std::move(uses), padded_,
                     [this](const device::Tile& tile) { return clear(tile); });
}

void Fetches::add_uses(Uses& uses) const {
  uses.add(whole_);
  for (const Fetch& fetch : all_) uses.add({{fetch.from->buffer}, {fetch.to->buffer}});
}

std::vector<device::Move> Fetches::moves() const {
  std::vector<device::Move> moves;
  for (const Fetch& fetch : all_) {
    const auto of_one = moves_between(*fetch.from, *fetch.to, bytes_of(type_));
    moves.insert(moves.end(), of_one.begin(), of_one.end());
  }
  return moves;
}

// The slots have memory of their own, so their rows are adjacent.
Cycles Fetches::clear(const device::Tile& tile) const {
  Cycles cycles;
  for (const Padding& padding : padding_[std::size_t(tile.id().value)]) {
    const device::ByteRows rows = tile.view(padding.slot);
    std::memset(rows.data + padding.tail, 0, std::size_t(padding.tail_bytes));
    for (std::int64_t row = 0; row < padding.rows; ++row) {
      const std::int64_t end = padding.first + row * padding.stride + padding.row_bytes;
      const std::int64_t begin = std::max<std::int64_t>(0, end - padding.row_bytes);
      const std::int64_t stop = std::min(end, rows.bytes());
      if (begin < stop) std::memset(rows.data + begin, 0, std::size_t(stop - begin));
    }
    cycles += codelets::clear_padding_cycles(padding.tail_bytes, padding.rows, padding.row_bytes,
                                             program_.engine().machine().workers);
  }
  return cycles;
}

void hand_over(TileProgram& program, const TensorHome& from, const TensorHome& to,
               Fetches& fetches) {
  fetches.add(from, to, Cleared::All);
  fetches.declare_clear();
  Uses uses;
  fetches.add_uses(uses);
  program.exchange(Phase::HandOver, std::move(uses), {}, fetches.moves());
}

}  // namespace tessera::runtime::internal
