#include "tessera/base/tile_map.hpp"

namespace tessera {
namespace {

std::int64_t wrap(std::int64_t value, std::int64_t count) {
  const std::int64_t rest = value % count;
  return rest < 0 ? rest + count : rest;
}

}  // namespace

TileId TileMap::tile(Cell c) const {
  const std::int64_t before = c.g * (splits_.x * splits_.y * splits_.z);
  if (order_ == TileOrder::Yzx) return TileId(before + (c.y * splits_.z + c.z) * splits_.x + c.x);
  return TileId(before + (c.x * splits_.y + c.y) * splits_.z + c.z);
}

Cell TileMap::cell(TileId tile) const {
  const std::int64_t of_a_group = splits_.x * splits_.y * splits_.z;
  const std::int64_t g = tile.value / of_a_group, t = tile.value % of_a_group;
  if (order_ == TileOrder::Yzx) {
    const std::int64_t yz = t / splits_.x;
    return {t % splits_.x, yz / splits_.z, yz % splits_.z, g};
  }
  const std::int64_t xy = t / splits_.z;
  return {xy / splits_.y, xy % splits_.y, t % splits_.z, g};
}

Cell TileMap::moved(Cell c, Cell by) const {
  return {wrap(c.x + by.x, splits_.x), wrap(c.y + by.y, splits_.y), wrap(c.z + by.z, splits_.z),
          c.g};
}

std::vector<TileId> TileMap::all() const {
  std::vector<TileId> tiles;
  tiles.reserve(std::size_t(this->tiles()));
  for (std::int64_t t = 0; t < this->tiles(); ++t) tiles.emplace_back(t);
  return tiles;
}

}  // namespace tessera
