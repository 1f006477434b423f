#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tessera/base/problem.hpp"
#include "tessera/base/tile_map.hpp"
#include "tessera/planner/homes.hpp"
#include "tessera/planner/plan.hpp"
#include "tessera/runtime/internal/home_buckets.hpp"
#include "tessera/runtime/internal/layer_weights.hpp"
#include "tessera/runtime/internal/network_machine.hpp"
#include "tessera/runtime/internal/pass_homes.hpp"

namespace tessera::runtime::internal {

// One layout of a layer's weights in a network: the encoded weights and the buckets on their tiles,
// which all passes of the layout share.
class NetworkLayout {
 public:
  // `problem` is that of the layout (planner::two_problems); `plan` has its partition and methods.
  // Throws Error{InvalidArgument} if the plan is not one of the problem.
  NetworkLayout(const Problem& problem, const planner::Plan& plan, const NetworkMachine& machine);

  std::int64_t bucket_bytes() const { return shape.payload_bytes; }
  std::int64_t values_per_bucket() const { return bucket_bytes() / bytes_of(problem.data_type); }
  std::int64_t bucket_of(TileId tile) const;
  std::int64_t values_bytes() const { return grid.buckets() * bucket_bytes(); }

  // The homes of the dense tensors of this layout.
  planner::Homes homes() const { return {problem, plan}; }

  // The inputs of a pass of this layout.
  PassSpec spec(Pass pass) const;

  // Declares the buckets, with `of` at the end of the names of their buffers. Add the buffers to
  // those that the load writes, and give the buckets to a pass of this layout.
  void declare_resident(const std::string& of);
  void add_loaded(Uses& uses) const;
  void give(PassHomes& homes, Pass pass) const;

  // Load the words and these values, [buckets][values_per_bucket], and copy the values back.
  void load(const std::byte* from) const;
  void collect(std::byte* to) const;

  const Problem problem;
  const planner::Plan plan;
  const partitioner::TileGrid grid;  // checked
  LayerWeights weights;
  const TileMap map;
  const BucketShape shape;
  BufferId values_buffer;
  std::vector<device::SlotId> values;  // by tile

 private:
  NetworkMachine machine_;
  BufferId words_buffer_, grad_a_words_buffer_;
  std::vector<device::SlotId> words_, grad_a_words_;  // by tile
  // The values of all tiles in Share mode, [buckets][values_per_bucket]. Those of a cell are
  // adjacent, as the gathers that move them to another layout find their pieces.
  std::vector<std::byte> placed_values_;
};

}  // namespace tessera::runtime::internal
