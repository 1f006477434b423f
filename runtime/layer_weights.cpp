#include "tessera/runtime/internal/layer_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "tessera/partitioner/update.hpp"
#include "tessera/runtime/internal/layer_on_tiles.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/restrict.hpp"

namespace tessera::runtime::internal {

sparse::CheckedCsr<float> in_grid(const sparse::CheckedCsr<float>& weights,
                                  const partitioner::TileGrid& grid) {
  const auto fit = [](std::int64_t a, std::int64_t b) { return a % b == 0 || b % a == 0; };
  const BlockShape from = weights->block, to = grid.block;
  const bool smaller = from.rows % to.rows == 0 && from.cols % to.cols == 0;
  if (smaller) return sparse::with_shape(sparse::with_block(weights, to), grid.size.x, grid.size.y);
  const bool merges = fit(from.rows, to.rows) && fit(from.cols, to.cols) &&
                      grid.size.x % from.rows == 0 && grid.size.y % from.cols == 0;
  const auto parts = merges ? weights : sparse::with_block(weights, BlockShape{1, 1});
  return sparse::with_block(sparse::with_shape(parts, grid.size.x, grid.size.y), to);
}

LayerWeights::LayerWeights(const Problem& problem, const partitioner::TileGrid& grid,
                           Executor& executor)
    : problem_(problem), grid_(grid), executor_(executor) {}

LayerWeights::Matrix LayerWeights::converted(const sparse::CheckedCsr<float>& weights) const {
  Matrix matrix{weights, std::nullopt, 1, {}};
  if (weights->block == grid_.block && weights->rows == grid_.size.x &&
      weights->cols == grid_.size.y)
    return matrix;
  matrix.in_grid = in_grid(weights, grid_);
  matrix.run = std::gcd(weights->block.cols, grid_.block.cols);
  matrix.places = sparse::positions_on(*matrix.in_grid, weights, matrix.run);
  return matrix;
}

std::optional<partitioner::Misfit> LayerWeights::encode(
    std::span<const sparse::CheckedCsr<float>> weights, const partitioner::EncodeOptions& options) {
  next_.clear();
  spare_.resize(weights.size());
  for (std::size_t g = 0; g < weights.size(); ++g) {
    const Matrix& matrix = next_.emplace_back(converted(weights[g]));
    auto misfit = partitioner::encode_into(spare_[g], matrix.pattern(), grid_, executor_, options);
    if (misfit) return named(std::move(misfit), std::int64_t(g));
  }
  prepare_take();
  return std::nullopt;
}

void LayerWeights::prepare_take() {
  values_.resize(std::size_t(problem_.size.g * values_per_group() * bytes_of(problem_.data_type)));
  const BucketImage next{spare_, nullptr, {}};
  next_travel_words_ = partitioner::travel_words(next.travel(), grid_.splits.z);
}

void LayerWeights::take() {
  kept_.swap(next_);
  next_.clear();
  buckets_.swap(spare_);
  travel_words_.swap(next_travel_words_);
  for (std::int64_t g = 0; g < problem_.size.g; ++g) refill(g);
}

std::optional<partitioner::Misfit> LayerWeights::encode_update(const sparse::PatternChange& change,
                                                               std::int64_t group) {
  const auto g = std::size_t(group);
  const Matrix& old = kept_[g];
  next_.clear();
  const Matrix& matrix = next_.emplace_back(converted(sparse::with_change(old.given, change)));
  const bool same_blocks = matrix.given->block == grid_.block;
  const sparse::PatternChange in_blocks =
      same_blocks ? change : sparse::difference(*old.in_grid, *matrix.in_grid);
  spare_.resize(buckets_.size());
  spare_[g] = buckets_[g];
  partitioner::UpdateResult updated =
      partitioner::update(spare_[g], matrix.pattern(), in_blocks, executor_);
  if (updated.misfit) return named(std::move(updated.misfit), group);
  // With larger blocks in the grid, a removed place may change a value of a block that remains.
  changed_.reset();
  if (same_blocks) changed_ = std::move(updated.changed);
  partitioner::Travel farthest = spare_[g].travel;
  for (std::size_t other = 0; other < buckets_.size(); ++other)
    if (other != g) widen(farthest, buckets_[other].travel);
  next_travel_words_ = partitioner::travel_words(farthest, grid_.splits.z);
  return std::nullopt;
}

void LayerWeights::take_update(std::int64_t group) {
  std::swap(buckets_[std::size_t(group)], spare_[std::size_t(group)]);
  std::swap(kept_[std::size_t(group)], next_.front());
  next_.clear();
  travel_words_.swap(next_travel_words_);
  refill(group, changed_ ? &*changed_ : nullptr);
}

void LayerWeights::reserve_values(std::int64_t group) {
  Matrix& matrix = kept_[std::size_t(group)];
  matrix.given.mutable_values();
  if (matrix.in_grid) matrix.in_grid->mutable_values();
}

void LayerWeights::set_values(std::span<const float> values, std::int64_t group) {
  reserve_values(group);
  Matrix& matrix = kept_[std::size_t(group)];
  put_values(values, matrix);
  refill(group);
}

void LayerWeights::put_values(std::span<const float> values, Matrix& matrix) {
  internal::put_values(values, matrix.given);
  if (!matrix.in_grid) return;
  const std::span<float> in_grid = matrix.in_grid->mutable_values();
  const float* from = values.data();
  for (const std::int64_t place : matrix.places) {
    std::copy_n(from, matrix.run, in_grid.data() + place);
    from += matrix.run;
  }
}

partitioner::SpillStats LayerWeights::spill() const {
  partitioner::SpillStats all = buckets(0).stats;
  const auto take_larger = [](auto& most, const auto& other) { most = std::max(most, other); };
  for (const partitioner::Buckets& buckets : std::span(buckets_).subspan(1)) {
    const partitioner::SpillStats& s = buckets.stats;
    all.blocks += s.blocks;
    all.moved_blocks += s.moved_blocks;
    all.records += s.records;
    all.travel += s.travel;
    all.cut_rows += s.cut_rows;
    take_larger(all.fullest_words, s.fullest_words);
    take_larger(all.fullest_blocks, s.fullest_blocks);
    take_larger(all.fullest_grad_a_words, s.fullest_grad_a_words);
    take_larger(all.greedy_steps, s.greedy_steps);
    take_larger(all.lower_bound_steps, s.lower_bound_steps);
    take_larger(all.load, s.load);
    take_larger(all.uneven_load, s.uneven_load);
  }
  if (buckets_.size() > 1) all.steps = image().travel().steps();
  return all;
}

namespace {

// The words of all buckets, as bytes.
using BucketWords = std::variant<std::vector<std::uint16_t>, std::vector<std::uint32_t>>;
std::span<const std::byte> as_byte_span(const BucketWords& words) {
  return std::visit([](const auto& list) { return std::as_bytes(std::span(list)); }, words);
}

}  // namespace

PatternBytes LayerWeights::pattern_bytes() const {
  PatternBytes all;
  for (const partitioner::Buckets& buckets : buckets_)
    all.words += Bytes(std::ssize(as_byte_span(buckets.meta)) +
                       std::ssize(as_byte_span(buckets.grad_a_meta)));
  all.values = Bytes(std::ssize(values_));
  all.travel = Bytes(std::ssize(std::as_bytes(std::span(travel_words_))));
  return all;
}

std::vector<std::int64_t> LayerWeights::bucket_positions(std::int64_t group) const {
  const Matrix& matrix = kept_[std::size_t(group)];
  const partitioner::Buckets& buckets = buckets_[std::size_t(group)];
  const std::int64_t area = grid_.block.area();
  std::vector<std::int64_t> in_pattern(matrix.pattern()->values.size());
  for (std::size_t slot = 0; slot < buckets.source.size(); ++slot) {
    const std::int64_t block = buckets.source[slot];
    for (std::int64_t i = 0; block >= 0 && i < area; ++i)
      in_pattern[std::size_t(block * area + i)] = std::int64_t(slot) * area + i;
  }
  if (!matrix.in_grid) return in_pattern;
  std::vector<std::int64_t> positions(matrix.given->values.size());
  matrix.copy_given(in_pattern.data(), positions.data());
  return positions;
}

template <class T>
void LayerWeights::to_given(std::span<const T> in_order, std::int64_t group,
                            std::span<float> result) {
  const auto g = std::size_t(group), count = std::size_t(values_per_group());
  to_given(kept_[g], buckets_[g], in_order.subspan(g * count, count), result);
}

template <class T>
void LayerWeights::to_given(const Matrix& matrix, const partitioner::Buckets& buckets,
                            std::span<const T> in_order, std::span<float> result) {
  if (!matrix.in_grid) return partitioner::from_bucket_order<float, T>(buckets, in_order, result);
  in_pattern_.resize(matrix.pattern()->values.size());
  partitioner::from_bucket_order<float, T>(buckets, in_order, in_pattern_);
  matrix.copy_given(in_pattern_.data(), result.data());
}

std::optional<partitioner::Misfit> LayerWeights::named(std::optional<partitioner::Misfit> misfit,
                                                       std::int64_t group) const {
  if (problem_.size.g > 1) misfit->message = fmt::format("group {}: {}", group, misfit->message);
  return misfit;
}

void LayerWeights::refill(std::int64_t group, const std::vector<std::int64_t>* changed) {
  const std::span<const float> from = kept_[std::size_t(group)].pattern()->values;
  const partitioner::Buckets& buckets = buckets_[std::size_t(group)];
  with_type(problem_.data_type, [&]<class T>(T) {
    if (changed != nullptr)
      partitioner::refill_changed<T, float>(buckets, from, values_of<T>(group), *changed);
    else
      partitioner::refill<T, float>(buckets, from, values_of<T>(group), executor_);
  });
}

template <class T>
std::span<T> LayerWeights::values_of(std::int64_t group) {
  const std::int64_t count = values_per_group();
  return {reinterpret_cast<T*>(values_.data()) + group * count, std::size_t(count)};
}

std::int64_t LayerWeights::values_per_group() const {
  return grid_.buckets() * grid_.blocks * grid_.block.area();
}

template void LayerWeights::to_given(std::span<const float>, std::int64_t, std::span<float>);
template void LayerWeights::to_given(std::span<const Half>, std::int64_t, std::span<float>);
template void LayerWeights::to_given(std::span<const BFloat16>, std::int64_t, std::span<float>);
template void LayerWeights::to_given(const Matrix&, const partitioner::Buckets&,
                                     std::span<const float>, std::span<float>);
template void LayerWeights::to_given(const Matrix&, const partitioner::Buckets&,
                                     std::span<const Half>, std::span<float>);
template void LayerWeights::to_given(const Matrix&, const partitioner::Buckets&,
                                     std::span<const BFloat16>, std::span<float>);

}  // namespace tessera::runtime::internal
