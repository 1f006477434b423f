#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tessera/base/tile_map.hpp"
#include "tessera/planner/homes.hpp"
#include "tessera/runtime/internal/network_layer.hpp"
#include "tessera/runtime/internal/weight_layout.hpp"

namespace tessera::runtime::internal {

// The buckets of one layout of a layer's weights on the tiles of a network, which all passes of the
// layout share.
class NetworkLayout {
 public:
  // The layout must outlive this object.
  NetworkLayout(const WeightLayout& layout, TileProgram& program);

  std::int64_t bucket_value_bytes() const { return layout.value_bytes().value; }
  std::int64_t values_per_bucket() const {
    return bucket_value_bytes() / bytes_of(layout.problem.data_type);
  }
  std::int64_t bucket_of(TileId tile) const {
    return runtime::bucket_of(layout.grid, map.cell(tile));
  }
  std::int64_t values_bytes() const { return layout.all_value_bytes().value; }

  // The homes of the dense tensors of this layout.
  planner::Homes homes() const { return {layout.problem, layout.plan}; }

  // Declares the buckets, with `of` at the end of the names of their buffers. Add the buffers to
  // those that the load writes, and give the buckets to a pass of this layout.
  void declare_resident(const std::string& of);
  void add_loaded(Uses& uses) const;
  void give(PassHomes& homes, Pass pass) const;

  void load_words() const;
  // Returns the values of all tiles, [buckets][values_per_bucket], as parts without gradients.
  std::vector<UpdatedPart> parts() const;

  const WeightLayout& layout;
  const TileMap map;
  HomeBuckets buckets;

 private:
  // True: GradA reads words of its own.
  bool has_grad_a_words() const { return layout.grid.separate_grad_a; }

  TileProgram& program_;
  HomeBuckets grad_a_buckets_;  // those words, with the same values
  // The values of all tiles in Share mode, [buckets][values_per_bucket]. Those of a cell are
  // adjacent, as the gathers that move them to another layout find their pieces.
  std::vector<std::byte> placed_values_;
};

}  // namespace tessera::runtime::internal
