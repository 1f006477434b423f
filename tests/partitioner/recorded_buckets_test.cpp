// Compares buckets with a table, whole: words, order of values, travel and figures of drawn
// matrices, before and after a change of the pattern. Which tile a spilled block goes to, and what
// an even load costs, changes no product, so no other test sees each of them. When they are meant
// to change, the table is written again with
//   TESSERA_RECORD=new.tsv build/release/tests/partitioner/recorded_buckets_tests
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "tessera/base/int_math.hpp"
#include "tessera/base/random.hpp"
#include "tessera/partitioner/forecast.hpp"
#include "tessera/partitioner/update.hpp"
#include "tessera/tests/partitioner/bucket_checks.hpp"
#include "tessera/tests/partitioner/patterns.hpp"
#include "tessera/tests/support/recorded.hpp"
#include "tessera/tests/support/trials.hpp"

namespace tessera::partitioner {
namespace {

using codelets::Method;

// Rows of three kinds: as dense as the others, four times as dense, or empty.
sparse::Csr<float> draw_matrix(Random& random) {
  constexpr BlockShape kBlocks[] = {{1, 1}, {1, 1}, {4, 4}, {2, 3}, {16, 16}};
  const BlockShape block = kBlocks[random.below(5)];
  const std::int64_t rows = 4 + random.below(40), cols = 4 + random.below(40);
  const double density = 0.05 + 0.3 * random.unit();
  std::vector<double> of_row;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t kind = random.below(6);
    of_row.push_back(kind == 0 ? std::min(4 * density, 1.0) : kind == 1 ? 0.0 : density);
  }
  return test::make_matrix(rows, cols, block, [&](std::int64_t r, std::int64_t) {
    return random.unit() < of_row[std::size_t(r)];
  });
}

// Returns up to five shares, none of which is empty.
std::int64_t draw_parts(std::int64_t blocks, Random& random) {
  return ceil_div(blocks, ceil_div(blocks, 1 + random.below(5)));
}

TileGrid draw_grid(const sparse::Csr<float>& matrix, Random& random) {
  constexpr DataType kTypes[] = {DataType::Float, DataType::Half};
  const std::int64_t z_parts = 1 + random.below(3);
  TileGrid grid{.size = {1, matrix.rows, matrix.cols, z_parts * 2 * (1 + random.below(8))},
                .block = matrix.block,
                .z_grain = 2,
                .splits = {1, draw_parts(matrix.block_rows(), random),
                           draw_parts(matrix.block_cols(), random), z_parts},
                .data_type = kTypes[random.below(2)],
                .workers = random.below(3) == 0 ? 1 : 6,
                .word_bits = random.below(3) == 0 ? 32 : 16,
                .grad_w = random.below(2) == 0};
  grid.separate_grad_a = matrix.block.is_element() && random.below(2) == 0;
  return test::with_uniform_capacity(grid, matrix, 0.5 * random.unit() - 0.03);
}

EncodeOptions draw_options(const TileGrid& grid, Random& random) {
  EncodeOptions options{.force_spills = grid.buckets() > 1 && random.below(6) == 0};
  if (random.below(3) == 0) options.spilling = Spilling::Greedy;
  if (random.below(2) == 0) return options;
  constexpr Method kOfBlocks[] = {Method::BlockFwd, Method::BlockTranspose, Method::BlockGradW,
                                  Method::BlockGradWAmp};
  const Method method = grid.block.is_element() ? Method::ElementFwd : kOfBlocks[random.below(4)];
  options.even_load = LoadCost{.kernel = {.method = method,
                                          .data_type = grid.data_type,
                                          .block = grid.block,
                                          .workers = grid.workers},
                               .shift = Cycles(random.below(400))};
  return options;
}

template <class Words>
void add_words(tessera::test::Digest& digest, const Words& meta) {
  std::visit([&](const auto& words) { digest.add(words.data(), words.size() * sizeof(words[0])); },
             meta);
}

std::string text_of(const SpillStats& s) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {}", s.blocks, s.moved_blocks, s.records,
                     s.fullest_words, s.fullest_blocks, s.fullest_grad_a_words, s.steps,
                     s.greedy_steps, s.lower_bound_steps, s.travel, s.cut_rows, s.load.value,
                     s.uneven_load.value);
}

void add_buckets(tessera::test::Digest& digest, const Buckets& buckets) {
  add_words(digest, buckets.meta);
  add_words(digest, buckets.grad_a_meta);
  digest.add(buckets.source.data(), buckets.source.size() * sizeof(buckets.source[0]));
  for (const std::uint32_t word : travel_words(buckets.travel, buckets.grid.splits.z))
    digest.add(std::int64_t(word));
  digest.add(text_of(buckets.stats));
}

TEST(RecordedBuckets, OfDrawnMatricesAreAsRecorded) {
  tessera::test::RecordedTable table("recorded_buckets.tsv", "matrix");
  const auto executor = make_executor(1);
  Random random(401);
  for (int number = 0; number < tessera::test::trials(500); ++number) {
    const sparse::Csr<float> matrix = draw_matrix(random);
    const TileGrid grid = draw_grid(matrix, random);
    const EncodeOptions options = draw_options(grid, random);
    EncodeResult result = encode(matrix, grid, options);
    tessera::test::Digest digest;
    for (const double density : {0.05, 0.2, 0.6})
      digest.add(fmt::format("{:.4f} {:.4f}", spill_probability(grid, density),
                             capacity_factor_for(grid, density, 0.1)));
    std::string text = "misfit";
    if (result.misfit) {
      digest.add(result.misfit->message);
    } else {
      Buckets& buckets = *result.buckets;
      text = text_of(buckets.stats);
      add_buckets(digest, buckets);
      const auto change = test::random_change(matrix, 0.02 + 0.1 * random.unit(), random);
      const auto changed = sparse::with_change(matrix, change);
      const UpdateResult update = partitioner::update(buckets, changed, change, *executor);
      digest.add(fmt::format("{} {} {}", update.afresh, fmt::join(update.changed, " "),
                             update.misfit ? update.misfit->message : ""));
      add_buckets(digest, buckets);
    }
    table.expect(number, text + '\t' + digest.text());
  }
}

TEST(RecordedBuckets, HaveATestForEachKind) {
  tessera::test::expect_kinds("recorded_buckets.tsv", {"matrix"});
}

}  // namespace
}  // namespace tessera::partitioner
