#include "tessera/runtime/saved_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/partitioner/saved_weights.hpp"
#include "tessera/runtime/internal/fully_connected_state.hpp"
#include "tessera/runtime/internal/layer_weights.hpp"
#include "tessera/runtime/internal/sparse_layer.hpp"
#include "tessera/runtime/internal/transposed_layout.hpp"

// Weights that were encoded before: FullyConnected::saved_weights and restore_weights.
namespace tessera::runtime {
namespace internal {
namespace {

[[noreturn]] void refuse_other(const char* field, std::int64_t saved, std::int64_t own) {
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("the weights were encoded for another plan, layer or machine: {} {}, but "
                          "{} here; use the plan that they were encoded for, or encode them again",
                          field, saved, own));
}

// Throws Error{InvalidArgument}, which names the first field that differs.
void check_same(const partitioner::TileGrid& saved, const partitioner::TileGrid& own) {
  const std::tuple<const char*, std::int64_t, std::int64_t> fields[] = {
      {"outputs are", saved.size.x, own.size.x},
      {"inputs are", saved.size.y, own.size.y},
      {"the batch is", saved.size.z, own.size.z},
      {"rows of a block are", saved.block.rows, own.block.rows},
      {"columns of a block are", saved.block.cols, own.block.cols},
      {"parts of the outputs are", saved.splits.x, own.splits.x},
      {"parts of the inputs are", saved.splits.y, own.splits.y},
      {"parts of the batch are", saved.splits.z, own.splits.z},
      {"the grain of the batch is", saved.z_grain, own.z_grain},
      {"bytes of a value are", bytes_of(saved.data_type), bytes_of(own.data_type)},
      {"the number of the type of values is", std::int64_t(saved.data_type),
       std::int64_t(own.data_type)},
      {"workers of a tile are", saved.workers, own.workers},
      {"bits of a word are", saved.word_bits, own.word_bits},
      {"tables of GradW are", saved.grad_w, own.grad_w},
      {"separate GradA buckets are", saved.separate_grad_a, own.separate_grad_a},
      {"words of a bucket are", saved.meta_words, own.meta_words},
      {"GradA words of a bucket are", saved.grad_a_words, own.grad_a_words},
      {"blocks of a bucket are", saved.blocks, own.blocks}};
  for (const auto& [name, of_file, here] : fields)
    if (of_file != here) refuse_other(name, of_file, here);
}

// Returns the values of the encoded matrix, widened.
std::vector<float> values_in(const partitioner::Buckets& buckets,
                             std::span<const std::byte> bytes) {
  return with_type(buckets.grid.data_type, [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> in_order(bytes.size() / sizeof(T));
    if (!in_order.empty()) std::memcpy(in_order.data(), bytes.data(), bytes.size());
    return partitioner::from_bucket_order<float, T>(buckets, in_order);
  });
}

}  // namespace

partitioner::SavedLayout LayerWeights::saved_layout() const {
  partitioner::SavedLayout layout{.grid = grid_, .groups = {}};
  for (const partitioner::Buckets& buckets : buckets_)
    layout.groups.push_back(partitioner::saved(buckets));
  return layout;
}

std::vector<std::byte> LayerWeights::saved_values(std::int64_t group) const {
  const std::int64_t count = values_per_group() * bytes_of(problem_.data_type);
  const auto first = values_.begin() + group * count;
  return {first, first + count};
}

std::vector<sparse::CheckedCsr<float>> LayerWeights::restore(
    const partitioner::SavedWeights& saved) {
  std::vector<sparse::CheckedCsr<float>> weights;
  for (const sparse::Csr<float>& pattern : saved.patterns) {
    check_weight_matrix(problem_, pattern);  // its block decides how many values there are
    sparse::Csr<float> matrix = pattern;
    matrix.values.assign(matrix.col.size() * std::size_t(matrix.block.area()), 0.0f);
    weights.push_back(sparse::checked(std::move(matrix)));
  }
  restore(weights, saved.layouts.front());
  for (std::size_t g = 0; g < weights.size(); ++g) {
    Matrix& matrix = next_[g];
    const std::vector<float> encoded = values_in(spare_[g], saved.values[g]);
    std::vector<float> values = encoded;
    if (matrix.in_grid) {
      values.resize(matrix.given->values.size());
      float* to = values.data();
      for (const std::int64_t place : matrix.places)
        to = std::copy_n(encoded.data() + place, matrix.run, to);
    }
    put_values(values, matrix);
    weights[g] = matrix.given;
  }
  return weights;
}

void LayerWeights::restore(std::span<const sparse::CheckedCsr<float>> weights,
                           const partitioner::SavedLayout& layout) {
  check_weights(problem_, weights);
  check_same(layout.grid, grid_);
  next_.clear();
  spare_.resize(weights.size());
  for (std::size_t g = 0; g < weights.size(); ++g) {
    const Matrix& matrix = next_.emplace_back(converted(weights[g]));
    spare_[g] = partitioner::restored(grid_, layout.groups[g],
                                      matrix.in_grid ? **matrix.in_grid : *matrix.given, executor_);
  }
  prepare_take();
}

void TransposedLayout::restore(std::span<const sparse::CheckedCsr<float>> weights,
                               const partitioner::SavedLayout& layout) {
  layout_.weights().restore(turned(weights), layout);
}

void check_saved(const partitioner::SavedWeights& saved, std::size_t layouts, std::int64_t groups) {
  if (saved.layouts.size() != layouts)
    refuse_other("layouts are", std::ssize(saved.layouts), std::int64_t(layouts));
  for (const std::size_t own :
       {saved.patterns.size(), saved.values.size(), saved.layouts.front().groups.size(),
        saved.layouts.back().groups.size()})
    if (std::int64_t(own) != groups) refuse_other("groups are", std::int64_t(own), groups);
}

partitioner::SavedWeights saved_weights(const LayerWeights& first, const LayerWeights* second,
                                        std::int64_t groups) {
  partitioner::SavedWeights saved;
  for (std::int64_t g = 0; g < groups; ++g) {
    sparse::Csr<float> pattern = *first.given(g);
    pattern.values.clear();
    saved.patterns.push_back(std::move(pattern));
    saved.values.push_back(first.saved_values(g));
  }
  saved.layouts.push_back(first.saved_layout());
  if (second != nullptr) saved.layouts.push_back(second->saved_layout());
  return saved;
}

partitioner::SavedWeights SparseLayer::saved_weights() const {
  return internal::saved_weights(forward_.weights(),
                                 transposed_ ? &transposed_->layout().weights() : nullptr,
                                 problem_.size.g);
}

void SparseLayer::restore_weights(const partitioner::SavedWeights& saved) {
  check_saved(saved, transposed_ ? 2 : 1, problem_.size.g);
  const auto weights = forward_.weights().restore(saved);
  if (transposed_) transposed_->restore(weights, saved.layouts.back());
  if (transposed_) transposed_->take();
  forward_.weights().take();
}

}  // namespace internal

std::vector<sparse::CheckedCsr<float>> weights_of(const partitioner::SavedWeights& saved,
                                                  const Problem& problem, const planner::Plan& plan,
                                                  const device::Machine& machine,
                                                  Executor& executor) {
  if (plan.dense)
    throw Error(ErrorCode::InvalidArgument,
                "saved weights: the plan is dense and has no buckets; plan with useDense false");
  if (saved.layouts.empty() || saved.layouts.front().groups.size() != saved.patterns.size() ||
      saved.values.size() != saved.patterns.size())
    throw Error(ErrorCode::InvalidArgument,
                "saved weights: patterns, values and buckets are not of the same groups");
  const Problem first = internal::forward_problem(problem, plan);
  return internal::LayerWeights(first, tile_grid(first, plan, machine), executor).restore(saved);
}

partitioner::SavedWeights FullyConnected::saved_weights() const {
  return state_->buckets_layer("saved_weights").saved_weights();
}

void FullyConnected::restore_weights(const partitioner::SavedWeights& saved) {
  const auto call = state_->caller.enter("restore_weights");
  state_->buckets_layer("restore_weights").restore_weights(saved);
}

}  // namespace tessera::runtime
