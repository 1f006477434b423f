#include "tessera/base/tile_map.hpp"

#include <gtest/gtest.h>

namespace tessera {
namespace {

class Orders : public testing::TestWithParam<TileOrder> {};

TEST_P(Orders, EveryCellHasItsOwnTile) {
  const TileMap map({1, 3, 4, 5}, GetParam());
  ASSERT_EQ(map.tiles(), 60);
  for (const TileId tile : map.all()) EXPECT_EQ(map.tile(map.cell(tile)), tile);
}

TEST_P(Orders, MovingWrapsAroundBothWays) {
  const TileMap map({1, 3, 4, 5}, GetParam());
  EXPECT_EQ(map.moved({2, 3, 4}, {1, 1, 1}), (Cell{0, 0, 0}));
  EXPECT_EQ(map.moved({0, 0, 0}, {-1, -1, -1}), (Cell{2, 3, 4}));
  EXPECT_EQ(map.moved({1, 1, 1}, {-7, 8, 0}), (Cell{0, 1, 1}));
}

TEST_P(Orders, TilesOfAGroupFollowThoseOfTheGroupBefore) {
  const TileMap one({1, 3, 4, 5}, GetParam()), four({4, 3, 4, 5}, GetParam());
  ASSERT_EQ(four.tiles(), 240);
  for (const TileId tile : four.all()) {
    const Cell c = four.cell(tile);
    EXPECT_EQ(four.tile(c), tile);
    EXPECT_EQ(c.g, tile.value / 60);
    EXPECT_EQ(tile.value, 60 * c.g + one.tile({c.x, c.y, c.z}).value);
    EXPECT_EQ(four.moved(c, {1, -1, 7}).g, c.g);
  }
}

INSTANTIATE_TEST_SUITE_P(TileMap, Orders, testing::Values(TileOrder::Yzx, TileOrder::Xyz),
                         [](const auto& p) { return p.param == TileOrder::Yzx ? "Yzx" : "Xyz"; });

TEST(TileMap, TheLastNamedAxisRunsFastest) {
  EXPECT_EQ(TileMap({1, 3, 4, 5}, TileOrder::Yzx).tile({1, 0, 0}), TileId(1));
  EXPECT_EQ(TileMap({1, 3, 4, 5}, TileOrder::Yzx).tile({0, 0, 1}), TileId(3));
  EXPECT_EQ(TileMap({1, 3, 4, 5}, TileOrder::Xyz).tile({0, 0, 1}), TileId(1));
  EXPECT_EQ(TileMap({1, 3, 4, 5}, TileOrder::Xyz).tile({1, 0, 0}), TileId(20));
}

}  // namespace
}  // namespace tessera
