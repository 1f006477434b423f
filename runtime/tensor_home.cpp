#include "tessera/runtime/internal/tensor_home.hpp"

#include <cstring>
#include <utility>

#include "tessera/runtime/internal/home_buckets.hpp"

namespace tessera::runtime::internal {

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
        {{share.first_row + share.elements.begin / share.width, 0, 1, {0, share.rows()}},
         share.tile,
         {}});
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
  std::vector<std::vector<const HomeShare*>> by_row(std::size_t(from.rows));
  for (const HomeShare& share : from.shares)
    from.for_each_row(share,
                      [&](std::int64_t row, Range) { by_row[std::size_t(row)].push_back(&share); });
  std::vector<device::Move> moves;
  for (const HomeShare& share : to.shares)
    to.for_each_row(share, [&](std::int64_t row, Range wanted) {
      for (const HomeShare* const held : by_row[std::size_t(row)]) {
        const Range both = common(held->cols_in(row, from.cols), wanted);
        if (both.size() == 0) continue;
        add_move(moves,
                 {held->slot, share.slot, held->position(row, both.begin) * element_bytes,
                  share.position(row, both.begin) * element_bytes, both.size() * element_bytes});
      }
    });
  return moves;
}

void load_matrix(device::Engine& engine, const TensorHome& home, DataType type,
                 MatrixView<const float> matrix) {
  with_type(type, [&]<class T>(T) {
    std::vector<T> elements;  // of a share
    for (const HomeShare& share : home.shares) {
      elements.assign(std::size_t(share.elements.size()), T());
      home.for_each_element(share, [&](std::int64_t row, std::int64_t col, std::int64_t at) {
        elements[std::size_t(at)] = T(matrix(row, col));
      });
      engine.load(share.slot, rows_at(elements.data(), share.elements.size(), sizeof(T)));
    }
  });
}

void load_rows(device::Engine& engine, const TensorHome& home, const device::ByteRows& operand,
               std::int64_t element_bytes) {
  for (const HomeShare& share : home.shares)
    if (share.elements.size() > 0)
      engine.load(share.slot, operand.sub({share.first_row, share.first_row + share.rows()},
                                          {share.first_col * element_bytes,
                                           (share.first_col + share.width) * element_bytes}));
}

void collect_rows(const device::Engine& engine, const TensorHome& home,
                  const device::ByteRows& result, std::int64_t element_bytes) {
  for (const HomeShare& share : home.shares) {
    const std::byte* const from = engine.view(share.slot).data;
    home.for_each_row(share, [&](std::int64_t row, Range columns) {
      std::memcpy(result.data + row * result.stride + columns.begin * element_bytes,
                  from + share.position(row, columns.begin) * element_bytes,
                  std::size_t(columns.size() * element_bytes));
    });
  }
}

void collect_matrix(const device::Engine& engine, const TensorHome& home, DataType type,
                    MatrixView<float> matrix) {
  with_type(type, [&]<class T>(T) {
    for (const HomeShare& share : home.shares) {
      const auto* const from = reinterpret_cast<const T*>(engine.view(share.slot).data);
      home.for_each_element(share, [&](std::int64_t row, std::int64_t col, std::int64_t at) {
        matrix(row, col) = float(from[at]);
      });
    }
  });
}

}  // namespace tessera::runtime::internal
