#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/runtime/pass_spec.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::runtime::internal {

// The weights in the grid's blocks and size, empty blocks not stored. Blocks of which neither
// divides the other are taken apart first.
sparse::Csr<float> in_grid(const sparse::Csr<float>& weights, const partitioner::TileGrid& grid);

// The weights of a layer, for each group: as they were given, and as the machine holds them.
// Invariants:
//   1. Before the first set() there is nothing; then given_, in_grid_ and buckets_ have one entry
//      for each group and values_ those of all groups, all of the same matrices.
//   2. Whatever fails leaves these as they were: new buckets are made in spare_, whose contents
//      mean nothing between calls, and change places with the old ones when all is well.
class LayerWeights {
 public:
  // `grid` is that of one group, checked. The executor must outlive this.
  LayerWeights(const Problem& problem, const partitioner::TileGrid& grid, Executor& executor);

  // Error{InvalidArgument} for weights that are not this layer's, as set() throws it.
  void check(std::span<const sparse::Csr<float>> weights) const;
  // The functions of FullyConnected with these names.
  std::optional<partitioner::Misfit> set(std::span<const sparse::Csr<float>> weights,
                                         const partitioner::EncodeOptions& options);
  std::optional<partitioner::Misfit> update(const sparse::PatternChange& change,
                                            std::int64_t group);
  void set_values(std::span<const float> values, std::int64_t group);

  bool empty() const { return buckets_.empty(); }
  BucketImage image() const { return {buckets_, values_.data(), travel_words_}; }
  // Error{InvalidArgument} before set(), and for a group there is not.
  const partitioner::Buckets& buckets(std::int64_t group) const;
  const sparse::Csr<float>& given(std::int64_t group) const;
  partitioner::SpillStats spill() const;
  // Values in bucket order, [groups][buckets][values_per_bucket], at the places of the given
  // pattern. T is the C++ type of the layer's data type. Allocates nothing where `result` has room,
  // from the second call on.
  template <class T>
  void to_given(std::span<const T> in_order, std::int64_t group, sparse::Csr<float>& result);

 private:
  void check_weights(const sparse::Csr<float>& weights) const;
  void check_group(std::int64_t group) const;
  bool is_in_grid(const sparse::Csr<float>& weights) const;
  const sparse::Csr<float>& pattern(std::int64_t group) const;
  std::optional<partitioner::Misfit> named(std::optional<partitioner::Misfit> misfit,
                                           std::int64_t group) const;
  void say_travel();
  // The values of a group's pattern into all its buckets, or into the changed ones.
  void refill(std::int64_t group);
  void refill_changed(std::int64_t group, std::span<const std::int64_t> changed);
  template <class T>
  std::span<T> values_of(std::int64_t group);
  std::int64_t values_per_group() const;

  Problem problem_;
  partitioner::TileGrid grid_;
  Executor& executor_;
  std::vector<sparse::Csr<float>> given_;
  std::vector<std::optional<sparse::Csr<float>>>
      in_grid_;  // where block or size are not the grid's
  std::vector<partitioner::Buckets> buckets_, spare_;
  std::vector<std::byte> values_;  // BucketImage::values
  // [groups][values of the given pattern] position of each value in in_grid_; empty without that.
  std::vector<std::vector<std::int64_t>> places_;
  std::vector<float> in_pattern_;            // values of in_grid_, on their way to given ones
  std::vector<std::uint32_t> travel_words_;  // BucketImage::travel_words
};

}  // namespace tessera::runtime::internal
