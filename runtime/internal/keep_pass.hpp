#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tessera/codelets/cost/softmax_cycles.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/runtime/block_softmax.hpp"
#include "tessera/runtime/internal/tile_program.hpp"

namespace tessera::runtime::internal {

// Sets values to 0 where masks do not keep them, in a program of its own (own_pass.hpp). Values
// stay where they are; a tile has a bit for each place of its share, and looks only at blocks that
// are not kept whole.
class KeepPass {
 public:
  using Masks = std::span<const sparse::Csr<float>>;

  // `resident` are bytes of every tile that are not available.
  KeepPass(Masks masks, const ValueHomes& homes, DataType type, Bytes resident,
           TileProgram& program);
  static std::string name_of(Masks, const ValueHomes&, DataType, Bytes) { return "keep the mask"; }
  void declare_alone(Executor&);

  // Take values in the order of the masks, and give back what is kept of them.
  void start(std::span<const float> values);
  void finish(std::span<float> values) const;

 private:
  struct Share {
    std::vector<std::uint32_t> kept;  // a bit for each place
    codelets::SoftmaxWork slowest;
    device::SlotId mask, values, result;
  };

  void make_shares(Masks masks);
  void load();
  Cycles keep(const device::Tile& tile) const;

  ValueHomes homes_;
  DataType type_;
  Bytes resident_;
  TileProgram& program_;
  device::Engine& engine_ = program_.engine();
  std::vector<Share> shares_;          // by home
  std::vector<std::int64_t> home_of_;  // by tile; -1: none
  std::vector<std::byte> staged_;
};

}  // namespace tessera::runtime::internal
