#include "tessera/runtime/saved_weights.hpp"

#include <fmt/format.h>

#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/printable.hpp"
#include "tessera/layer/check_weights.hpp"
#include "tessera/partitioner/saved_weights.hpp"
#include "tessera/runtime/internal/encoded_weights.hpp"
#include "tessera/runtime/internal/sparse_layer.hpp"

// Weights that were encoded before: FullyConnected::saved_weights and restore_weights.
namespace tessera::runtime {
namespace internal {
namespace {

constexpr std::size_t kMostShown = 400;  // letters of a text that a file has

void check_same(const char* field, const std::string& saved, const std::string& own) {
  if (saved == own) return;
  throw_invalid(
      fmt::format("the weights were encoded for another plan, layer or machine: {} {}, but {} "
                  "here; use the plan that they were encoded for, or encode them again",
                  field, printable(saved.substr(0, kMostShown)), own));
}

}  // namespace

partitioner::SavedLayout LayerWeights::saved_layout() const {
  partitioner::SavedLayout layout{.grid = partitioner::to_text(grid_), .groups = {}};
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
  check_same("values are", to_string(saved.type), to_string(problem_.data_type));
  std::vector<sparse::CheckedCsr<float>> weights;
  for (const sparse::Csr<float>& pattern : saved.patterns) {
    layer::check_weight_matrix(problem_, pattern);  // its block decides how many values there are
    sparse::Csr<float> matrix = pattern;
    matrix.values.assign(matrix.col.size() * std::size_t(matrix.block.area()), 0.0f);
    weights.push_back(sparse::checked(std::move(matrix)));
  }
  restore(weights, saved.layouts.front());
  for (std::size_t g = 0; g < weights.size(); ++g) {
    Matrix& matrix = next_[g];
    const std::vector<std::byte>& bytes = saved.values[g];
    std::vector<float> values(matrix.given->values.size());
    with_type(problem_.data_type, [&]<class T>(T) {
      std::vector<T> in_order(bytes.size() / sizeof(T));
      if (!in_order.empty()) std::memcpy(in_order.data(), bytes.data(), bytes.size());
      to_given<T>(matrix, spare_[g], in_order, values);
    });
    put_values(values, matrix);
    weights[g] = matrix.given;
  }
  return weights;
}

void LayerWeights::restore(std::span<const sparse::CheckedCsr<float>> weights,
                           const partitioner::SavedLayout& layout) {
  layer::check_weights(problem_, weights);
  check_same("the grid is", layout.grid, partitioner::to_text(grid_));
  next_.clear();
  spare_.resize(weights.size());
  for (std::size_t g = 0; g < weights.size(); ++g) {
    const Matrix& matrix = next_.emplace_back(converted(weights[g]));
    spare_[g] = partitioner::restored(grid_, layout.groups[g], *matrix.pattern(), executor_);
  }
  prepare_take();
}

partitioner::SavedWeights EncodedWeights::saved() const {
  partitioner::SavedWeights saved;
  saved.type = forward.weights.buckets(0).grid.data_type;
  for (std::int64_t g = 0; g < forward.weights.groups(); ++g) {
    sparse::Csr<float> pattern = *forward.weights.given(g);
    pattern.values.clear();
    saved.patterns.push_back(std::move(pattern));
    saved.values.push_back(forward.weights.saved_values(g));
  }
  saved.layouts.push_back(forward.weights.saved_layout());
  if (transposed) saved.layouts.push_back(transposed->weights.saved_layout());
  return saved;
}

void EncodedWeights::restore(const partitioner::SavedWeights& saved) {
  check_same("layouts are", std::to_string(saved.layouts.size()),
             std::to_string(transposed ? 2 : 1));
  for (const std::size_t own :
       {saved.patterns.size(), saved.values.size(), saved.layouts.front().groups.size(),
        saved.layouts.back().groups.size()})
    check_same("groups are", std::to_string(own), std::to_string(forward.weights.groups()));
  const auto weights = forward.weights.restore(saved);
  if (transposed) transposed->weights.restore(turned(weights), saved.layouts.back());
  take();
}

}  // namespace internal

std::vector<sparse::CheckedCsr<float>> weights_of(const partitioner::SavedWeights& saved,
                                                  const Problem& problem, const planner::Plan& plan,
                                                  const device::Machine& machine,
                                                  Executor& executor) {
  if (plan.dense)
    throw_invalid("saved weights: the plan is dense and has no buckets; plan with useDense false");
  if (saved.layouts.empty() || saved.layouts.front().groups.size() != saved.patterns.size() ||
      saved.values.size() != saved.patterns.size())
    throw_invalid("saved weights: patterns, values and buckets are not of the same groups");
  const Problem first = internal::forward_problem(problem, plan);
  return internal::LayerWeights(first, tile_grid(first, plan, machine), executor).restore(saved);
}

partitioner::SavedWeights FullyConnected::saved_weights() const {
  internal::SparseLayer& layer = state().buckets_layer("saved_weights");
  check_group(0);
  return layer.weights().saved();
}

void FullyConnected::restore_weights(const partitioner::SavedWeights& saved) {
  const auto call = state().caller.enter("restore_weights");
  state().restore_weights(saved);
}

}  // namespace tessera::runtime
