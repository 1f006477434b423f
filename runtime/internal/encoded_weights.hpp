#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/runtime/internal/layer_weights.hpp"

namespace tessera::runtime::internal {

// The weights of a layer in its forward layout and, if the plan has two layouts, in that of
// transpose(R), which has the same values. A call that fails leaves both as they were.
class EncodedWeights {
 public:
  // `second` is for transpose(R), and even_load of encoding is then by its own cost; null: there is
  // one layout. Both must outlive this object.
  EncodedWeights(LayerWeights& first, LayerWeights* second,
                 const partitioner::LoadCost& second_cost = {})
      : first_(first), second_(second), second_cost_(second_cost) {}

  // The functions of FullyConnected. A misfit of the second layout says so.
  std::optional<partitioner::Misfit> set(std::span<const sparse::CheckedCsr<float>> weights,
                                         const partitioner::EncodeOptions& options = {});
  partitioner::SavedWeights saved() const;
  void restore(const partitioner::SavedWeights& saved);

  // FullyConnected::update_weights in two halves, as in LayerWeights.
  std::optional<partitioner::Misfit> encode_update(const sparse::PatternChange& change,
                                                   std::int64_t group);
  void take_update(std::int64_t group);

  // Takes values in the order of the pattern of R. Allocates nothing from the second call on.
  void set_values(std::span<const float> values, std::int64_t group);

  // Returns the position of each value of R of a group in the value buckets of both layouts.
  struct Positions {
    std::vector<std::int64_t> first, second;
  };
  Positions positions(std::int64_t group) const;

  // Takes gradients of all groups in the order of transpose(R), and writes them in that of R.
  void turn_back(std::span<const float> turned, std::span<float> gradients) const;

 private:
  // Returns the transposed weights, and notes where their values are in them.
  std::vector<sparse::CheckedCsr<float>> turned(std::span<const sparse::CheckedCsr<float>> weights);
  void take();

  LayerWeights& first_;
  LayerWeights* second_;
  partitioner::LoadCost second_cost_;
  // [groups][values of R]: the position of each value in transpose(R), for the current weights and
  // for those encoded last; after encode_update() only of the group that changes.
  std::vector<std::vector<std::int64_t>> places_, next_places_;
  std::vector<float> turned_values_;  // scratch of set_values, in the order of transpose(R)
};

}  // namespace tessera::runtime::internal
