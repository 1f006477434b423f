#include "tessera/runtime/internal/tensor_home.hpp"

#include <algorithm>
#include <utility>

namespace tessera::runtime::internal {
namespace {

// A part of one row of a tensor in a share: columns `cols`, the first of them at element `element`
// of the share's slot.
struct RowPart {
  const HomeShare* share = nullptr;
  std::int64_t row = 0, element = 0;
  Range cols;
};

// Calls visit(part) for each row of a share, without padding.
template <class Visit>
void for_each_row_part(const TensorHome& home, const HomeShare& share, Visit&& visit) {
  for (std::int64_t e = share.elements.begin; e < share.elements.end;) {
    const std::int64_t end = std::min(share.elements.end, (e / share.width + 1) * share.width);
    const std::int64_t begin = share.col_of(e);
    const RowPart part{&share,
                       share.row_of(e),
                       e - share.elements.begin,
                       {begin, std::min(home.cols, begin + end - e)}};
    if (part.row < home.rows && part.cols.size() > 0) visit(part);
    e = end;
  }
}

}  // namespace

SharesByTile::SharesByTile(const TensorHome& home, std::int64_t tiles)
    : index_(std::size_t(tiles), -1) {
  for (std::size_t i = 0; i < home.shares.size(); ++i) {
    tiles_.push_back(home.shares[i].tile);
    index_[std::size_t(tiles_.back().value)] = static_cast<std::int32_t>(i);
  }
}

void add_slots(TileProgram& program, TensorHome& home, std::string name, std::int64_t element_bytes,
               bool resident) {
  home.buffer = program.add_buffer(std::move(name), resident);
  for (HomeShare& share : home.shares)
    share.slot = program.add_slot(home.buffer, share.tile, share.elements.size(), element_bytes,
                                  device::SlotKind::Owned);
}

TensorHome tensor_home(const planner::Home& home, Shares shares) {
  TensorHome made{home.rows, home.cols, {}, {}};
  for (std::size_t tile = 0; tile < home.pieces.size(); ++tile)
    if (shares == Shares::OfAllTiles || home.pieces[tile].elements.size() > 0)
      made.shares.push_back({home.pieces[tile], TileId(std::int64_t(tile)), {}});
  return made;
}

TensorHome rows_home(const TensorHome& home) {
  TensorHome made{home.rows, 1, {}, {}};
  for (const HomeShare& share : home.shares)
    made.shares.push_back(
        {{share.row_of(share.elements.begin), 0, 1, {0, share.rows()}}, share.tile, {}});
  return made;
}

namespace {

// Adds a move, or lengthens the last one if both runs go on where it ends.
void add_move(std::vector<device::Move>& moves, const device::Move& next) {
  if (!moves.empty()) {
    device::Move& last = moves.back();
    if (last.from == next.from && last.to == next.to &&
        last.from_byte + last.bytes == next.from_byte &&
        last.to_byte + last.bytes == next.to_byte) {
      last.bytes += next.bytes;
      return;
    }
  }
  moves.push_back(next);
}

}  // namespace

std::vector<device::Move> moves_between(const TensorHome& from, const TensorHome& to,
                                        std::int64_t element_bytes) {
  std::vector<std::vector<RowPart>> by_row(std::size_t(from.rows));
  for (const HomeShare& share : from.shares)
    for_each_row_part(from, share,
                      [&](const RowPart& part) { by_row[std::size_t(part.row)].push_back(part); });
  std::vector<device::Move> moves;
  for (const HomeShare& share : to.shares)
    for_each_row_part(to, share, [&](const RowPart& wanted) {
      for (const RowPart& part : by_row[std::size_t(wanted.row)]) {
        const Range both = common(part.cols, wanted.cols);
        if (both.size() == 0) continue;
        add_move(moves, {part.share->slot, share.slot,
                         (part.element + both.begin - part.cols.begin) * element_bytes,
                         (wanted.element + both.begin - wanted.cols.begin) * element_bytes,
                         both.size() * element_bytes});
      }
    });
  return moves;
}

}  // namespace tessera::runtime::internal
