// Weights that come as three arrays of another library, as SciPy and PyTorch keep them, become
// PopSparse's pair of meta-information and values, are trained in that form, and come back. The
// program exits with 1 if the result differs from a step on the decoded weights.

#include "tessera/partitioner/sparsity_data.hpp"

#include <cstdint>
#include <cstdio>
#include <vector>

#include "tessera/arrays/optim/step.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/sparse/compressed.hpp"
#include "tessera/tessera.hpp"
#include "tessera/train/optim/encoded.hpp"

namespace {

using namespace tessera;

// A 4 x 6 matrix as rows, columns and values of its entries, in the order of its rows.
const std::vector<std::int64_t> kRows = {0, 0, 1, 3, 3, 3};
const std::vector<std::int64_t> kCols = {0, 5, 2, 1, 3, 4};
const std::vector<float> kValues = {1, 2, 3, 4, 5, 6};
const std::vector<float> kGradients = {10, 20, 30, 40, 50, 60};
const train::Optimiser kSgd{.rule = train::Sgd{.learning_rate = 0.1}};

// Checks the arrays by PyTorch's rules before anything trusts them.
sparse::Csr<float> import_weights() {
  const std::vector<std::int64_t> row_begin = sparse::compress_indices(kRows, /*lines=*/4);
  sparse::check({.rows = 4,
                 .cols = 6,
                 .crow_indices = std::span<const std::int64_t>(row_begin),
                 .col_indices = std::span<const std::int64_t>(kCols),
                 .values_shape = {std::ssize(kValues)}});
  sparse::Csr<float> weights;
  weights.rows = 4;
  weights.cols = 6;
  weights.row_begin = row_begin;
  weights.col.assign(kCols.begin(), kCols.end());
  weights.values = kValues;
  return weights;
}

// Two partitions along x and two along y, with a capacity of four values in every bucket.
partitioner::TileGrid four_tiles() {
  return {.size = {1, 4, 6, 1}, .splits = {1, 2, 2, 1}, .meta_words = 100, .blocks = 4};
}

sparse::Csr<float> step_encoded(const sparse::Csr<float>& weights, Executor& executor) {
  auto made = partitioner::create_sparsity_data(weights, four_tiles());
  if (!made.data) throw Error(ErrorCode::InvalidArgument, made.misfit->message);
  partitioner::SparsityData<float>& data = *made.data;
  const auto gradients =
      partitioner::to_bucket_order<float>(data.buckets, std::span<const float>(kGradients));
  auto state = train::make_encoded_state<float>(kSgd, data.buckets);
  train::step<float, float>(kSgd, data.buckets, data.values, gradients, state, executor);
  return partitioner::to_csr(data);
}

sparse::Csr<float> step_decoded(const sparse::Csr<float>& weights) {
  arrays::Array<float> array = weights;
  sparse::Csr<float> gradient = weights;
  gradient.values = kGradients;
  auto state = arrays::make_state(kSgd, array);
  arrays::step(kSgd, array, arrays::Array<float>(gradient), state);
  return std::get<sparse::Csr<float>>(array);
}

}  // namespace

int main() {
  const auto executor = make_executor();
  const sparse::Csr<float> weights = import_weights();
  const sparse::Csr<float> encoded = step_encoded(weights, *executor);
  for (const float value : encoded.values) std::printf("%g ", double(value));
  const bool same = encoded == step_decoded(weights);
  std::printf("\n%s\n", same ? "the same as a step on the decoded weights" : "DIFFERENT");
  return same ? 0 : 1;
}
