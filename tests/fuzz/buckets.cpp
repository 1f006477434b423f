#include "tessera/partitioner/buckets.hpp"

#include <cmath>
#include <variant>

#include "tessera/base/error.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/tests/fuzz/input_bytes.hpp"
#include "tessera/tests/fuzz/targets.hpp"

namespace tessera::fuzz {
namespace {

using partitioner::Buckets;
using partitioner::TileGrid;

constexpr std::int64_t kMostBlocks = 9;  // along one side

sparse::Csr<float> matrix_of(InputBytes& bytes, BlockShape block) {
  const std::int64_t block_rows = bytes.number(1, kMostBlocks);
  const std::int64_t block_cols = bytes.number(1, kMostBlocks);
  Matrix<float> dense(block_rows * block.rows, block_cols * block.cols);
  for (std::int64_t r = 0; r < block_rows; ++r)
    for (std::int64_t c = 0; c < block_cols; ++c)
      if (bytes.number(0, 2) == 0)
        dense(r * block.rows, c * block.cols) = float(bytes.number(1, 100));
  return sparse::from_dense(MatrixView<const float>(dense.view()), block);
}

TileGrid grid_of(InputBytes& bytes, const sparse::Csr<float>& matrix) {
  TileGrid grid;
  grid.block = matrix.block;
  grid.splits = {1, bytes.number(1, 3), bytes.number(1, 3), bytes.number(1, 2)};
  grid.z_grain = bytes.number(1, 2);
  grid.size = {1, matrix.rows, matrix.cols, 4 * grid.z_grain};
  grid.workers = bytes.number(1, 6);
  grid.word_bits = bytes.flag() ? 16 : 32;
  grid.grad_w = bytes.flag();
  grid.separate_grad_a = matrix.block.is_element() && bytes.flag();
  grid.meta_words = bytes.number(1, 200);
  grid.grad_a_words = grid.separate_grad_a ? bytes.number(1, 200) : 0;
  grid.blocks = bytes.number(1, 60);
  return grid;
}

BlockShape block_of(InputBytes& bytes) {
  return bytes.flag() ? BlockShape{1, 1} : BlockShape{bytes.number(1, 3), bytes.number(1, 3)};
}

template <class Word>
void damage(std::vector<Word>& words, InputBytes& bytes) {
  if (words.empty()) return;
  for (std::int64_t count = bytes.number(1, 4); count > 0; --count)
    words[std::size_t(bytes.number(0, std::int64_t(words.size()) - 1))] = Word(bytes.any_number());
}

}  // namespace

void round_trip(Input input) {
  InputBytes bytes(input);
  const sparse::Csr<float> matrix = matrix_of(bytes, block_of(bytes));
  const TileGrid grid = grid_of(bytes, matrix);
  const partitioner::EncodeOptions options{.force_spills = bytes.flag(),
                                           .spilling = bytes.flag()
                                                           ? partitioner::Spilling::Greedy
                                                           : partitioner::Spilling::FewestSteps};
  accepts([&] {
    const auto result = partitioner::encode(matrix, grid, options);
    require(result.buckets.has_value() != result.misfit.has_value(),
            "there are buckets or a misfit");
    if (!result.buckets) return;
    const auto values = partitioner::to_bucket_order<float, float>(*result.buckets, matrix.values);
    require(partitioner::decode<float>(*result.buckets, values) == matrix,
            "decoding is the inverse of encoding");
  });
}

void bucket_words(Input input) {
  InputBytes bytes(input);
  const sparse::Csr<float> matrix = matrix_of(bytes, block_of(bytes));
  const TileGrid grid = grid_of(bytes, matrix);
  accepts([&] {
    auto result = partitioner::encode(matrix, grid);
    if (!result.buckets) return;
    Buckets& buckets = *result.buckets;
    const auto values = partitioner::to_bucket_order<float, float>(buckets, matrix.values);
    auto& words = bytes.flag() ? buckets.meta : buckets.grad_a_meta;
    std::visit([&](auto& list) { damage(list, bytes); }, words);
    sparse::check(partitioner::decode<float>(buckets, values));
  });
}

}  // namespace tessera::fuzz
