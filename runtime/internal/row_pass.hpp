#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tessera/codelets/cost/softmax_cycles.hpp"
#include "tessera/codelets/softmax.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/runtime/block_softmax.hpp"
#include "tessera/runtime/internal/tile_program.hpp"

namespace tessera::runtime::internal {

// The rows of all masks, dealt to tiles: those of a tile follow each other, and the values of a row
// too. `order` has the position of each value in the order of the masks.
struct DealtRows {
  std::vector<std::int64_t> order;       // [values]
  std::vector<std::int64_t> row_begin;   // [rows + 1], positions in `order`
  std::vector<std::int64_t> tile_begin;  // [tiles + 1], rows
  std::int64_t run = 0;                  // columns of a block; 0: single elements
  std::vector<bool> kept;                // [values] in this order; empty: all

  std::int64_t tiles() const { return std::ssize(tile_begin) - 1; }
};

// Deals the rows to at most `tiles` tiles, the longest first, each to the tile with the fewest
// values so far; of equal ones to the lowest.
DealtRows deal_rows(std::span<const sparse::Csr<float>> masks, std::int64_t tiles);

// The program of BlockSoftmax: one for the softmax with one input, and one for its gradient with
// two. Each is a program of its own (own_pass.hpp).
class RowPass {
 public:
  enum class Kind { Softmax, Gradient };
  using Inputs = std::span<const std::span<const float>>;

  // `rows` and `homes` must outlive the pass.
  RowPass(Kind kind, const DealtRows& rows, const ValueHomes& homes, float scale, DataType type,
          Bytes resident, TileProgram& program);
  static std::string name_of(Kind kind, const DealtRows&, const ValueHomes&, float, DataType,
                             Bytes) {
    return kind == Kind::Softmax ? "softmax of rows" : "gradient of the softmax";
  }
  void declare_alone(Executor&);

  // Take the values of a run in the order of the masks, and write its results, which may replace an
  // input.
  void start(Inputs inputs);
  void finish(Inputs inputs, std::span<float> out, const PassOptions& options) const;

  // Returns the cycles of a run, which do not depend on the values.
  Cycles planned() const;

 private:
  // The rows of one tile.
  struct Share {
    std::vector<std::int32_t> row_begin;
    std::vector<std::uint32_t> kept;
    codelets::SoftmaxWork slowest;
    device::SlotId table, mask, result;
    std::vector<device::SlotId> arrived;  // by input
  };

  std::int64_t element() const { return bytes_of(type_); }
  std::int64_t inputs() const { return kind_ == Kind::Softmax ? 1 : 2; }
  void make_shares();
  std::vector<std::uint32_t> kept_words(std::int64_t first, std::int64_t count) const;
  codelets::SoftmaxWork slowest_worker(std::int64_t tile) const;
  void add_slots();
  void list_exchanges();
  void load();
  Cycles compute(const device::Tile& tile) const;
  Cycles cycles_of(const codelets::SoftmaxWork& work) const;
  template <class T>
  void compute_as(const device::Tile& tile, const Share& share) const;
  codelets::SoftmaxRows rows_on(const device::Tile& tile, const Share& share) const;
  template <class T>
  void read_inputs(Inputs inputs);
  template <class T>
  void write_results(std::span<float> out) const;
  template <class T>
  void check(Inputs inputs, std::span<const float> results, const PassOptions& options) const;

  Kind kind_;
  const DealtRows& dealt_;
  const ValueHomes& homes_;
  float scale_;
  DataType type_;
  Bytes tile_bytes_;  // that are not available
  TileProgram& program_;
  device::Engine& engine_ = program_.engine();
  std::vector<Share> shares_;                         // by tile
  std::vector<TileId> tiles_;                         // of the shares
  std::vector<std::vector<device::SlotId>> home_in_;  // [inputs][homes]
  std::vector<device::SlotId> home_out_;              // [homes]
  BufferId resident_, table_, mask_, result_, home_out_buffer_;
  std::vector<BufferId> home_buffers_, arrived_buffers_;  // by input
  const device::Exchange *bring_ = nullptr, *return_ = nullptr;
  std::vector<std::vector<std::byte>> staged_;  // by input: all shares of the homes
};

}  // namespace tessera::runtime::internal
