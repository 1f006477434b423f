#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/codelets/cost/softmax_cycles.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/runtime/block_softmax.hpp"
#include "tessera/runtime/internal/tile_program.hpp"

namespace tessera::runtime::internal {

// A program that sets values to 0 where masks do not keep them. Values stay where they are; a tile
// has a bit for each place of its share, and looks only at blocks that are not kept whole.
class KeepPass {
 public:
  // `resident` are bytes of every tile that are not available. The executor must outlive the pass.
  KeepPass(std::span<const sparse::Csr<float>> masks, const ValueHomes& homes, DataType type,
           Bytes resident, const device::Machine& machine, device::ExchangeMode mode,
           Executor& executor);

  // Changes values in the order of the masks.
  bool run(std::span<float> values, const PassOptions& options, device::Ledger& ledger);

 private:
  struct Share {
    std::vector<std::uint32_t> kept;  // a bit for each place
    codelets::SoftmaxWork slowest;
    device::SlotId mask, values, result;
  };

  void make_shares(std::span<const sparse::Csr<float>> masks);
  void declare(Bytes resident);
  void load();
  Cycles keep(const device::Tile& tile) const;

  ValueHomes homes_;
  DataType type_;
  TileProgram program_;
  device::Engine& engine_ = program_.engine();
  std::vector<Share> shares_;          // by home
  std::vector<std::int64_t> home_of_;  // by tile; -1: none
  std::vector<std::byte> staged_;
};

}  // namespace tessera::runtime::internal
