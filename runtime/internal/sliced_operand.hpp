#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "tessera/base/tile_map.hpp"
#include "tessera/runtime/internal/hand_over.hpp"
#include "tessera/runtime/internal/tensor_home.hpp"
#include "tessera/runtime/internal/tile_program.hpp"
#include "tessera/runtime/pass_spec.hpp"

namespace tessera::runtime::internal {

// A dense operand of a pass with buckets: S, or dQ. Each tile needs a slice of it. It comes from a
// home in the network, or from the host, which loads equal shares to the tiles of each slice.
class SlicedOperand {
 public:
  enum class Name { S, Dq };

  // `order` is that of the cells whose slices the tiles need. The program must outlive the operand.
  SlicedOperand(const PassSpec& spec, Pass pass, Name name, TileOrder order, TileProgram& program);

  // Sets the home from which the operand comes, which must outlive this object; null: the host
  // loads it. It must be called first, then the buffers and then the slots are added.
  void come_from(const TensorHome* home_in_network);

  BufferId add_buffer(std::string name) {
    return slices_.buffer = program_.add_buffer(std::move(name));
  }

  // Adds the buffer of shares that have slots of their own, if there are any.
  void add_home_buffer(std::string name) {
    if (has_home()) home_.buffer = program_.add_buffer(std::move(name));
  }

  // Adds the slot of a tile's slice, for at most so many rows, and then the slot of its share.
  device::SlotId add_slot(TileId tile, std::int64_t most_rows);
  void add_home_slot(TileId tile);

  // Adds the buffers that the load writes, and loads the operand, which comes from the host.
  void add_loaded(Uses& uses) const;
  void load(const device::ByteRows& operand) const;

  // Adds the operand to those that an exchange brings to the tiles.
  void bring(Fetches& fetches, Cleared cleared) const;

  // The slices, and the shares that the host loads. They have a share for each tile.
  const TensorHome& slices() const { return slices_; }
  const TensorHome& home() const { return home_; }

  // The number of tiles that need the same slice.
  std::int64_t sharers() const;

 private:
  bool is_here(TileId tile) const;
  bool has_home() const;

  const PassSpec spec_;
  const Name name_;
  const bool is_spread_;  // over all tiles
  const TileMap home_map_, map_;
  TileProgram& program_;
  const TensorHome* from_ = nullptr;
  TensorHome home_, slices_;
};

}  // namespace tessera::runtime::internal
