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
#include "tessera/sparse/checked.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::runtime::internal {

// The weights in the grid's blocks and size, empty blocks not stored; shared where they have those
// already. Blocks of which neither divides the other are taken apart first.
sparse::CheckedCsr<float> in_grid(const sparse::CheckedCsr<float>& weights,
                                  const partitioner::TileGrid& grid);

// The weights of a layer, for each group: as they were given, and as the machine holds them.
// Invariants:
//   1. Before the first take() there is nothing; then kept_ and buckets_ have one entry for each
//      group and values_ those of all groups, all of the same matrices.
//   2. Whatever fails leaves these as they were: new weights are made in next_ and spare_, which
//      mean nothing but between encode() and take(), and change places with the old ones when all
//      is well.
class LayerWeights {
 public:
  // `grid` is that of one group, checked. The executor must outlive this.
  LayerWeights(const Problem& problem, const partitioner::TileGrid& grid, Executor& executor);

  // Error{InvalidArgument} for weights that are not this layer's.
  void check(std::span<const sparse::CheckedCsr<float>> weights) const;
  // FullyConnected::set_weights in two halves: encode() checks that these are the layer's weights
  // and encodes them, take() makes what was encoded last the layer's weights. What lies between
  // them may fail without a trace.
  std::optional<partitioner::Misfit> encode(std::span<const sparse::CheckedCsr<float>> weights,
                                            const partitioner::EncodeOptions& options);
  void take();
  // The functions of FullyConnected with these names.
  std::optional<partitioner::Misfit> update(const sparse::PatternChange& change,
                                            std::int64_t group);
  void set_values(std::span<const float> values, std::int64_t group);

  bool empty() const { return buckets_.empty(); }
  BucketImage image() const { return {buckets_, values_.data(), travel_words_}; }
  // Error{InvalidArgument} before take(), and for a group there is not.
  const partitioner::Buckets& buckets(std::int64_t group) const;
  const sparse::CheckedCsr<float>& given(std::int64_t group) const;
  // For each value of the given pattern its position in the buckets, [buckets][values_per_bucket].
  std::vector<std::int64_t> bucket_positions(std::int64_t group) const;
  partitioner::SpillStats spill() const;
  // Values in bucket order, [groups][buckets][values_per_bucket], at the places of the given
  // pattern. T is the C++ type of the layer's data type. Allocates nothing where `result` has room,
  // from the second call on.
  template <class T>
  void to_given(std::span<const T> in_order, std::int64_t group, sparse::Csr<float>& result);

 private:
  void check_weights(const sparse::Csr<float>& weights) const;
  void check_group(std::int64_t group) const;
  const sparse::CheckedCsr<float>& pattern(std::int64_t group) const;
  std::optional<partitioner::Misfit> named(std::optional<partitioner::Misfit> misfit,
                                           std::int64_t group) const;
  void say_travel();
  // The values of a group's pattern into all its buckets, or into the changed ones.
  void refill(std::int64_t group);
  void refill_changed(std::int64_t group, std::span<const std::int64_t> changed);
  template <class T>
  std::span<T> values_of(std::int64_t group);
  std::int64_t values_per_group() const;

  // Of each group.
  struct Matrix {
    sparse::CheckedCsr<float> given;
    std::optional<sparse::CheckedCsr<float>> in_grid;  // where block or size are not the grid's
    std::vector<std::int64_t> places;  // position of each value in in_grid; empty without that
  };
  using Kept = std::vector<Matrix>;
  Matrix converted(const sparse::CheckedCsr<float>& weights) const;

  Problem problem_;
  partitioner::TileGrid grid_;
  Executor& executor_;
  Kept kept_, next_;  // of the weights as they are, and of those that encode() was given last
  std::vector<partitioner::Buckets> buckets_, spare_;
  std::vector<std::byte> values_;            // BucketImage::values
  std::vector<float> in_pattern_;            // values of in_grid, on their way to given ones
  std::vector<std::uint32_t> travel_words_;  // BucketImage::travel_words
};

}  // namespace tessera::runtime::internal
