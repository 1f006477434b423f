#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/partitioner/saved_weights.hpp"
#include "tessera/runtime/pass_spec.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::runtime::internal {

// Returns the weights in the blocks and the size of the grid, without blocks that would be empty.
// The result shares the matrix of `weights` if that has this block and size already. If neither
// block divides the other, the weights are cut into single elements first.
sparse::CheckedCsr<float> in_grid(const sparse::CheckedCsr<float>& weights,
                                  const partitioner::TileGrid& grid);

// The bytes of a layout that follow from its patterns, over all tiles.
struct PatternBytes {
  Bytes words;   // meta-information of the buckets
  Bytes values;  // of the buckets, with padding
  Bytes travel;  // the words that steer propagation

  Bytes all() const { return words + values + travel; }
};

// The weights of a layer, for each group: as they were given, and as the machine holds them.
// Invariants:
//   1. Everything is empty before the first take(). After it, kept_ and buckets_ have one entry for
//      each group and values_ has the values of all groups, all for the same matrices.
//   2. A call that fails leaves these unchanged: new weights are made in next_, spare_, changed_
//   and
//      next_travel_words_, and are swapped with the old ones where nothing can fail any more. These
//      have a meaning between the two halves of a change only.
class LayerWeights {
 public:
  // `grid` is the checked grid of one group. The executor must outlive this object.
  LayerWeights(const Problem& problem, const partitioner::TileGrid& grid, Executor& executor);

  // FullyConnected::set_weights in two halves: encode() encodes the weights, and take()
  // makes the weights that were encoded last the layer's weights. Without take() the layer is
  // unchanged. take() cannot fail.
  std::optional<partitioner::Misfit> encode(std::span<const sparse::CheckedCsr<float>> weights,
                                            const partitioner::EncodeOptions& options);
  void take();

  // FullyConnected::restore_weights in two halves, of which take() is the second: these take the
  // buckets of a file without encoding. The first is for the first layout, whose values the file
  // has, and returns the weights; the other one is for the layout of transpose(R), whose weights
  // are those of the first. Throw the errors of FullyConnected::restore_weights.
  std::vector<sparse::CheckedCsr<float>> restore(const partitioner::SavedWeights& saved);
  void restore(std::span<const sparse::CheckedCsr<float>> weights,
               const partitioner::SavedLayout& layout);

  // Returns the buckets of all groups for a file, and the bytes of a group's values.
  partitioner::SavedLayout saved_layout() const;
  std::vector<std::byte> saved_values(std::int64_t group) const;

  // FullyConnected::update_weights in two halves of the same kind. take_update() must be called
  // with the group of encode_update().
  std::optional<partitioner::Misfit> encode_update(const sparse::PatternChange& change,
                                                   std::int64_t group);
  void take_update(std::int64_t group);

  // Returns the given matrix of the group that encode_update() encoded.
  const sparse::CheckedCsr<float>& updated() const { return next_.front().given; }

  // Makes copies of the matrices that are shared, so that set_values() cannot run out of memory.
  void reserve_values(std::int64_t group);

  // The function of FullyConnected with this name.
  void set_values(std::span<const float> values, std::int64_t group);

  std::int64_t groups() const { return problem_.size.g; }
  bool empty() const { return buckets_.empty(); }
  BucketImage image() const { return {buckets_, values_.data(), travel_words_}; }

  // Return what a group has after take().
  const partitioner::Buckets& buckets(std::int64_t group) const {
    return buckets_[std::size_t(group)];
  }
  const sparse::CheckedCsr<float>& given(std::int64_t group) const {
    return kept_[std::size_t(group)].given;
  }

  // Returns the bytes that this layout keeps on the machine for its patterns.
  PatternBytes pattern_bytes() const;

  // Returns, for each value of the given pattern, its position in the value buckets
  // [buckets][values_per_bucket].
  std::vector<std::int64_t> bucket_positions(std::int64_t group) const;

  partitioner::SpillStats spill() const;

  // Takes values in bucket order, [groups][buckets][values_per_bucket], and writes those of a group
  // to `result`, in the order of the given pattern. T is the C++ type of the layer's data type.
  // Allocates nothing from the second call on.
  template <class T>
  void to_given(std::span<const T> in_order, std::int64_t group, std::span<float> result);

 private:
  std::optional<partitioner::Misfit> named(std::optional<partitioner::Misfit> misfit,
                                           std::int64_t group) const;

  // Writes the values of a group's pattern into all its buckets, or into `changed` ones alone.
  void refill(std::int64_t group, const std::vector<std::int64_t>* changed = nullptr);
  template <class T>
  std::span<T> values_of(std::int64_t group);
  std::int64_t values_per_group() const;

  // The matrix of a group.
  struct Matrix {
    sparse::CheckedCsr<float> given;
    std::optional<sparse::CheckedCsr<float>> in_grid;  // if block or size are not the grid's

    // The position in in_grid of each run of so many values, which are neighbours in both; empty
    // without in_grid.
    std::int64_t run = 1;
    std::vector<std::int64_t> places;

    // Returns the matrix that is encoded.
    const sparse::CheckedCsr<float>& pattern() const { return in_grid ? *in_grid : given; }

    // Copies numbers in the order of in_grid's values to the order of the given ones.
    template <class T>
    void copy_given(const T* from, T* to) const {
      for (const std::int64_t place : places) to = std::copy_n(from + place, run, to);
    }
  };
  using Kept = std::vector<Matrix>;
  Matrix converted(const sparse::CheckedCsr<float>& weights) const;

  // Writes the values of a group of such a matrix in these buckets.
  template <class T>
  void to_given(const Matrix& matrix, const partitioner::Buckets& buckets,
                std::span<const T> in_order, std::span<float> result);

  // Writes values in the order of the given pattern into a matrix.
  static void put_values(std::span<const float> values, Matrix& matrix);

  // Prepares take() when spare_ has the buckets of all groups.
  void prepare_take();

  Problem problem_;
  partitioner::TileGrid grid_;
  Executor& executor_;
  Kept kept_, next_;  // the current weights, and those given to encode() last
  std::vector<partitioner::Buckets> buckets_, spare_;
  // The buckets that encode_update() changed; empty if all of them are to be filled.
  std::optional<std::vector<std::int64_t>> changed_;
  std::vector<std::byte> values_;  // BucketImage::values
  std::vector<float> in_pattern_;  // scratch of to_given: values of in_grid
  // BucketImage::travel_words of the current weights, and of those that were encoded last.
  std::vector<std::uint32_t> travel_words_, next_travel_words_;
};

}  // namespace tessera::runtime::internal
