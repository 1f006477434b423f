#include "tessera/codelets/visit_cost.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <list>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/codelets/work_split.hpp"
#include "tessera/tests/support/bucket_builder.hpp"

// Evenly spread records must cost exactly the estimates of PopSparse (golden figures) and of our
// formulas for the same counts. The costs of uneven records were computed by hand.
namespace tessera::test {
namespace {

using codelets::Format;
using codelets::KernelKey;
using codelets::Operation;
using codelets::VisitCostArgs;

constexpr DataType kHalf = DataType::Half, kFloat = DataType::Float;

// Makes `rows` rows of `per_row` entries each, which are `block` apart.
DrawnRecord even_record(std::int64_t rows, std::int64_t per_row, BlockShape block = {}) {
  DrawnRecord record;
  for (std::int64_t x = 0; x < rows; ++x) {
    record.rows.push_back({x * block.rows, {}});
    for (std::int64_t y = 0; y < per_row; ++y) record.rows.back().columns.push_back(y * block.cols);
  }
  return record;
}

DrawnRecord other_cell(DrawnRecord record) {
  record.sub_group = 8;
  return record;
}

struct Step {
  KernelKey key;
  BlockShape block = {};
  std::int64_t z = 4;
  bool amp = false;
  std::int64_t conv_units = 8;
};

std::int64_t cost(const Step& step, const std::vector<std::vector<DrawnRecord>>& buckets) {
  std::list<BucketWords> words;
  std::list<std::vector<std::uint16_t>> narrow_words;
  std::vector<const void*> pointers;
  const std::int64_t bytes = bytes_of(step.key.in);
  for (const std::vector<DrawnRecord>& records : buckets) {
    words.push_back(step.key.format == Format::Block ? block_words(records, step.block)
                    : step.key.operation == Operation::GradA
                        ? grad_a_words(records, bytes, step.z)
                        : element_words(records, bytes, step.z));
    if (step.key.word_bits == 16) narrow_words.push_back(narrow(words.back()));
    pointers.push_back(step.key.word_bits == 16
                           ? static_cast<const void*>(narrow_words.back().data())
                           : words.back().data());
  }
  const VisitCostArgs args{.key = step.key,
                           .grad_w_amp = step.amp,
                           .buckets = pointers,
                           .sub_group = 1,
                           .block = step.block,
                           .z = step.z,
                           .workers = 6,
                           .conv_units = step.conv_units};
  return codelets::visit_cycles(args).value;
}

KernelKey element(Operation operation, DataType in, std::int64_t word_bits = 32) {
  return {operation, Format::Element, in, kFloat, word_bits};
}

struct Golden {
  std::int64_t z, cycles;
};

// Above 8 halves or 4 floats the kernels pay the fixed part of a row for every group of columns, so
// these figures are PopSparse's estimates plus 60 rows times 2, 121 and 179 cycles.
TEST(VisitCost, OfAnEvenElementForwardRecordIsTheGoldenFigure) {
  for (const auto& [z, cycles] : {Golden{4, 3363}, {8, 4791}, {12, 8901}, {64, 38061}})
    EXPECT_EQ(cost({element(Operation::Fwd, kHalf), {}, z}, {{even_record(10, 20)}}), cycles) << z;
  for (const auto& [z, cycles] : {Golden{2, 3345}, {4, 4653}, {64, 70203}})
    EXPECT_EQ(cost({element(Operation::Fwd, kFloat), {}, z}, {{even_record(10, 20)}}), cycles) << z;
}

// 20 rows of 10 that are read by columns are 10 rows of 20. For several groups of columns the
// figures are PopSparse's estimates plus 60 rows times -1, 90 and 163 cycles.
TEST(VisitCost, OfAnEvenGradARecordIsTheGoldenFigure) {
  for (const auto& [z, cycles] : {Golden{4, 3350}, {8, 4778}, {12, 8534}, {64, 36014}})
    EXPECT_EQ(cost({element(Operation::GradA, kHalf), {}, z}, {{even_record(20, 10)}}), cycles)
        << z;
  for (const auto& [z, cycles] : {Golden{2, 3332}, {4, 4640}, {64, 69140}})
    EXPECT_EQ(cost({element(Operation::GradA, kFloat), {}, z}, {{even_record(20, 10)}}), cycles)
        << z;
}

TEST(VisitCost, OfAnEvenTransposedRecordIsTheGoldenFigure) {
  const auto transposed = [](DataType in) { return element(Operation::GradATransposed, in); };
  for (const auto& [z, cycles] : {Golden{4, 3202}, {8, 3742}, {12, 6178}, {64, 21778}})
    EXPECT_EQ(cost({transposed(kHalf), {}, z}, {{even_record(10, 20)}}), cycles) << z;
  for (const auto& [z, cycles] : {Golden{2, 3400}, {4, 4120}, {6, 4840}, {64, 25720}})
    EXPECT_EQ(cost({transposed(kFloat), {}, z}, {{even_record(10, 20)}}), cycles) << z;
}

struct BlockGolden {
  std::int64_t side;
  DataType in, sum;
  std::array<std::int64_t, 3> fwd, grad_a;
  std::int64_t conv_units = 8;
};

// Each of the six workers has z columns, so the tile has six times as many.
TEST(VisitCost, OfAnEvenBlockRecordIsTheGoldenFigure) {
  constexpr std::array<std::int64_t, 3> kZ = {1, 2, 16};
  for (const BlockGolden& g : {
           BlockGolden{4, kHalf, kFloat, {23310, 26910, 61710}, {26900, 30500, 65300}},
           {4, kHalf, kHalf, {20910, 24510, 59310}, {24500, 28100, 62900}},
           {4, kFloat, kFloat, {22910, 27710, 94910}, {26500, 31300, 98500}},
           {8, kHalf, kFloat, {34074, 40074, 107274}, {37664, 43664, 110864}},
           {8, kHalf, kHalf, {30492, 36492, 103692}, {34082, 40082, 107282}},
           {8, kFloat, kFloat, {42092, 51692, 187292}, {45682, 55282, 190882}},
           {16, kHalf, kFloat, {78492, 90492, 222492}, {85682, 97682, 229682}},
           {16, kHalf, kHalf, {43686, 49686, 115686}, {47276, 53276, 119276}, 16},
       }) {
    const BlockShape block{g.side, g.side};
    const std::vector<std::vector<DrawnRecord>> buckets = {{even_record(10, 20, block)}};
    for (std::size_t i = 0; i < kZ.size(); ++i) {
      const auto step = [&](Operation operation) -> Step {
        return {{operation, Format::Block, g.in, g.sum, 32}, block, 6 * kZ[i], false, g.conv_units};
      };
      SCOPED_TRACE(testing::Message() << "side " << g.side << " z " << kZ[i]);
      EXPECT_EQ(cost(step(Operation::Fwd), buckets), g.fwd[i]);
      EXPECT_EQ(cost(step(Operation::GradATransposed), buckets), g.grad_a[i]);
    }
  }
}

struct GradWGolden {
  std::int64_t side;
  DataType in, sum;
  std::vector<std::int64_t> cycles;
};

TEST(VisitCost, OfOneRunOfBlocksIsTheGoldenGradWFigure) {
  constexpr std::array<std::int64_t, 3> kZ = {1, 16, 64};
  for (const GradWGolden& g : {GradWGolden{4, kHalf, kFloat, {4991, 15791, 50351}},
                               {4, kHalf, kHalf, {4511, 15311, 49871}},
                               {4, kFloat, kFloat, {7157, 28757, 97877}},
                               {8, kHalf, kFloat, {16751, 59951, 198191}},
                               {8, kFloat, kFloat, {31007, 117407, 393887}},
                               {16, kHalf, kFloat, {72437, 245237, 798197}},
                               {16, kHalf, kHalf, {64757, 237557, 790517}}}) {
    const BlockShape block{g.side, g.side};
    DrawnRecord record = even_record(1, 20, block);
    record.grad_w_runs = {20};
    for (std::size_t i = 0; i < kZ.size(); ++i)
      EXPECT_EQ(
          cost({{Operation::GradW, Format::Block, g.in, g.sum, 32}, block, kZ[i]}, {{record}}),
          g.cycles[i])
          << "side " << g.side << " z " << kZ[i];
  }
}

TEST(VisitCost, OfBlocksThatAllWorkersShareIsTheGoldenFigure) {
  constexpr std::array<std::int64_t, 2> kZ = {16, 64};
  for (const GradWGolden& g : {GradWGolden{4, kHalf, kFloat, {11706, 38106}},
                               {4, kHalf, kHalf, {10746, 35706}},
                               {4, kFloat, kFloat, {23866, 88186}},
                               {8, kHalf, kFloat, {17146, 56986}},
                               {8, kFloat, kFloat, {37146, 139866}},
                               {16, kHalf, kFloat, {20826, 71706}}}) {
    const BlockShape block{g.side, g.side};
    for (std::size_t i = 0; i < kZ.size(); ++i)
      EXPECT_EQ(cost({{Operation::GradW, Format::Block, g.in, g.sum, 32}, block, kZ[i], true},
                     {{even_record(4, 20, block)}}),
                g.cycles[i])
          << "side " << g.side << " z " << kZ[i];
  }
}

// Half, z 4: the overhead is 32, a row costs 10, a non-zero 4. A run of 25 of rows of 20 touches
// two rows; the run of 35 that begins inside the second row touches two more.
TEST(VisitCost, OfElementGradWCountsTheRowsARunTouches) {
  DrawnRecord record = even_record(3, 20);
  record.grad_w_runs = {60};
  const Step step{element(Operation::GradW, kHalf)};
  EXPECT_EQ(cost(step, {{record}}), 101 + 6 * (32 + 3 * 10 + 60 * 4));
  record.grad_w_runs = {25, 35};
  EXPECT_EQ(cost(step, {{record}}), 101 + 6 * (32 + 2 * 10 + 35 * 4));
  record.grad_w_runs = {35, 25};
  EXPECT_EQ(cost(step, {{record}}), 101 + 6 * (32 + 2 * 10 + 35 * 4));
}

TEST(VisitCost, OfAGradWStepWithoutATableIsAnError) {
  EXPECT_THROW(cost({element(Operation::GradW, kHalf)}, {{even_record(3, 20)}}), Error);
  EXPECT_THROW(cost({{Operation::GradW, Format::Block, kHalf, kFloat, 16}, {4, 4}},
                    {{even_record(3, 20, {4, 4})}}),
               Error);
}

// Half, z 4 for each worker: the overhead is 30, a row costs 11, a non-zero 2.
TEST(VisitCost, IsThatOfTheWorkerWithTheMostToDo) {
  DrawnRecord record = draw({"aaaaaaaa", "aa", "a", "a"});
  const Step step{element(Operation::Fwd, kHalf)};
  record.workers = {{0, 1, 0, 4}, {1, 3, 0, 4}};
  EXPECT_EQ(cost(step, {{record}}), 123 + 6 * (30 + 3 * 11 + 4 * 2));  // not 11 + 8 * 2
  record.workers = {{0, 2, 0, 4}, {2, 2, 0, 4}};
  EXPECT_EQ(cost(step, {{record}}), 123 + 6 * (30 + 2 * 11 + 10 * 2));
}

// Half, z 4: the overhead is 20, a row costs 21, a group of up to six non-zeros 7.
TEST(VisitCost, OfATransposedRowIsItsLargestHand) {
  const Step step{element(Operation::GradATransposed, kHalf)};
  EXPECT_EQ(cost(step, {{draw({"aaaaaaa", "aaaaaa", "a"})}}),
            30 + 112 + 6 * (20 + 3 * 21 + (2 + 1 + 1) * 7));
}

TEST(VisitCost, PricesAMatchAtItsPlaceAndEveryRecordPassedOver) {
  const Step step{element(Operation::Fwd, kHalf)};
  const DrawnRecord own = even_record(1, 1), other = other_cell(own);
  const std::int64_t work = 6 * (30 + 11 + 2);
  EXPECT_EQ(cost(step, {{own}}), 30 + 47 + 46 + work);
  EXPECT_EQ(cost(step, {{other, own}}), 30 + 2 * 47 + 46 + work);
  EXPECT_EQ(cost(step, {{own, other}}), 30 + 47 + 46 + 32 + work);
  EXPECT_EQ(cost(step, {{other, other}, {own}}), 30 + 2 * 32 + 47 + 46 + work);
  EXPECT_EQ(cost(step, {{other}}), 30 + 32);
  EXPECT_EQ(cost(step, {{}}), 30);
  EXPECT_EQ(cost(step, {}), 30);
}

// The overhead of 30 is charged once; the workers synchronise after each record.
TEST(VisitCost, AddsTheSlowestWorkersOfAllRecords) {
  const Step step{element(Operation::Fwd, kHalf)};
  DrawnRecord first = draw({"aaaa", "a"}), second = draw({"a", "aaa"});
  first.workers = second.workers = {{0, 1, 0, 4}, {1, 1, 0, 4}};
  const std::int64_t work = 6 * (30 + (11 + 4 * 2) + (11 + 3 * 2));
  EXPECT_EQ(cost(step, {{first}, {second}}), 30 + 2 * (47 + 46) + work);
  EXPECT_EQ(cost(step, {{first, second}}), 30 + 2 * 47 + 2 * 46 + work);
}

TEST(VisitCost, IsTheSameForBothWidthsOfWords) {
  for (const Operation operation : {Operation::Fwd, Operation::GradA, Operation::GradATransposed})
    EXPECT_EQ(cost({element(operation, kFloat, 16)}, {{even_record(5, 7)}}),
              cost({element(operation, kFloat, 32)}, {{even_record(5, 7)}}));
  EXPECT_EQ(cost({{Operation::Fwd, Format::Block, kHalf, kHalf, 16}, {8, 8}},
                 {{even_record(2, 3, {8, 8})}}),
            cost({{Operation::Fwd, Format::Block, kHalf, kHalf, 32}, {8, 8}},
                 {{even_record(2, 3, {8, 8})}}));
}

// The block formula takes ceil(z / workers) as the largest share without computing the shares.
TEST(WorkSplit, GivesNobodyMoreThanAnEqualShareRoundedUpOfOneRow) {
  for (std::int64_t workers = 1; workers <= 12; ++workers)
    for (std::int64_t z = 1; z <= 200; ++z) {
      std::int64_t largest = 0;
      for (const codelets::WorkShare& share : codelets::split_between_workers(1, z, workers))
        largest = std::max(largest, share.cols.size());
      ASSERT_EQ(largest, ceil_div(z, workers)) << "z " << z << " workers " << workers;
    }
}

}  // namespace
}  // namespace tessera::test
