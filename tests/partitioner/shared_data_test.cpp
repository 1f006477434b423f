#include "tessera/tests/support/shared_data.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "tessera/io/read.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/tests/partitioner/bucket_checks.hpp"
#include "tessera/tests/support/trials.hpp"

// Real matrices: skewed, empty in places, of any size.
namespace tessera::partitioner {
namespace {

std::vector<std::filesystem::path> matrix_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const auto ending = entry.path().extension();
    // young1c is complex, which no reader takes.
    if ((ending == ".smtx" || ending == ".mtx" || ending == ".txt") &&
        entry.path().stem() != "young1c" && entry.path().filename() != "SHA256SUMS.txt")
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// In blocks, padded to whole ones, with values that all differ.
sparse::Csr<float> in_blocks(const sparse::Csr<double>& elements, BlockShape block) {
  auto matrix = sparse::with_block(
      sparse::with_shape(sparse::cast<float>(elements), round_up(elements.rows, block.rows),
                         round_up(elements.cols, block.cols)),
      block);
  for (std::size_t i = 0; i < matrix.values.size(); ++i) matrix.values[i] = float(i + 1);
  return matrix;
}

std::int64_t legal_splits(std::int64_t blocks, std::int64_t wanted) {
  while (share_of(blocks, 1, wanted, wanted - 1).size() <= 0) --wanted;
  return wanted;
}

// Roomy buckets, and the smallest that fit: all that a skewed matrix has to spill is spilled.
TEST(SharedMatrices, GoIntoBucketsAndBack) {
  TESSERA_NEED_SHARED(shared);
  const auto files = matrix_files(shared / "data");
  EXPECT_GE(files.size(), 36u);
  constexpr std::size_t kStep = tessera::test::kIsSanitized ? 5 : 1;
  for (std::size_t i = 0; i < files.size(); i += kStep)
    for (const BlockShape block : {BlockShape{1, 1}, BlockShape{4, 8}}) {
      SCOPED_TRACE(files[i].filename().string());
      const auto matrix = in_blocks(io::read_matrix(files[i]).matrix, block);
      TileGrid grid;
      grid.size = {1, matrix.rows, matrix.cols, 8};
      grid.block = block;
      grid.splits = {1, legal_splits(matrix.block_rows(), 6), legal_splits(matrix.block_cols(), 5),
                     2};
      grid.word_bits = block.is_element() ? 32 : 16;
      if (!block.is_element() && matrix.blocks() > 4000) grid.word_bits = 32;
      grid.grad_w = true;
      grid = test::with_uniform_capacity(grid, matrix, 0);
      const auto tight = encode(matrix, grid);
      if (tight.misfit) grid = with_capacity(grid, tight.misfit->capacity_factor);
      for (const TileGrid& g : {grid, test::with_room(grid, matrix)}) {
        const auto result = encode(matrix, g);
        ASSERT_TRUE(result.buckets.has_value());
        EXPECT_EQ(test::find_fault(*result.buckets, matrix), "");
        const auto values = to_bucket_order<float, float>(*result.buckets, matrix.values);
        EXPECT_EQ(decode(*result.buckets, std::span<const float>(values)), matrix);
      }
    }
}

}  // namespace
}  // namespace tessera::partitioner
