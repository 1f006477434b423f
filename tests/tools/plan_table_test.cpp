#include "tessera/tools/commands/plan_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "tessera/base/error.hpp"
#include "tessera/io/table.hpp"
#include "tessera/tests/support/process.hpp"

namespace tessera::tools {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

std::string planned(std::string_view text, const planner::Options& options = {}) {
  PlanSource source("");
  return plan_table(text, "my.tsv", {device::machine_preset("gc200"), options, source});
}

std::string recorded_table() {
  return test::read_file(std::string(TESSERA_SOURCE_DIR) + "/tests/data/popsparse_plans.tsv");
}

void expect_recorded_figures(const std::string& text) {
  const io::Table table = io::read_table(text, "planned");
  ASSERT_EQ(table.rows.size(), 400u);
  const std::pair<const char*, const char*> equal[] = {{"X", "our_X"},
                                                       {"Y", "our_Y"},
                                                       {"Z", "our_Z"},
                                                       {"cycles_total", "our_cycles"},
                                                       {"temp_bytes", "our_temp"},
                                                       {"nz_bucket", "our_nz"},
                                                       {"mi_fwd", "our_mi"}};
  for (const io::TableLine& row : table.rows)
    for (const auto& [theirs, ours] : equal)
      EXPECT_EQ(row.cells[table.need(ours)], row.cells[table.need(theirs)])
          << row.cells[0] << " " << theirs;
}

TEST(PlanTable, GivesPopSparsesFiguresWithItsCostModel) {
  planner::Options options;
  options.poplibs_parity = true;
  expect_recorded_figures(planned(recorded_table(), options));
}

TEST(PlanTable, KeepsEveryLineAsItWasAndAddsTheColumns) {
  planner::Options quick;
  quick.poplibs_parity = true;
  const std::string text = recorded_table(), result = planned(text, quick);
  const io::Table before = io::read_table(text, "before"), after = io::read_table(result, "after");
  ASSERT_EQ(after.rows.size(), before.rows.size());
  EXPECT_EQ(after.header.text,
            std::string(before.header.text) +
                "\tour_X\tour_Y\tour_Z\tour_cycles\tour_temp\tour_nz\tour_mi\tour_ms");
  const std::regex milliseconds("[0-9]+\\.[0-9]{3}");
  for (std::size_t i = 0; i < before.rows.size(); ++i) {
    EXPECT_THAT(std::string(after.rows[i].text),
                StartsWith(std::string(before.rows[i].text) + "\t"));
    EXPECT_EQ(after.rows[i].end, before.rows[i].end);
    EXPECT_TRUE(std::regex_match(std::string(after.rows[i].cells.back()), milliseconds));
  }
}

TEST(PlanTable, TakesColumnsInAnyOrderAndPassesOthersThrough) {
  const std::string row = "64\tmine\thalf\t0.25\tfwd\t1\t8\t48";
  const std::string result =
      planned("output_size\tnote\ttype\tdensity\tpasses\tblock\tbatch\tinput_size\n" + row + "\n");
  Problem problem;
  problem.size = {1, 64, 48, 8};
  problem.density = 0.25;
  const planner::Plan plan = planner::plan_or_throw(problem, device::machine_preset("gc200"));
  EXPECT_THAT(result,
              HasSubstr(row + "\t" + std::to_string(plan.partition.x) + "\t" +
                        std::to_string(plan.partition.y) + "\t" + std::to_string(plan.partition.z) +
                        "\t" + std::to_string(plan.cost.cycles.value) + "\t"));
}

const std::string kHeader = "output_size\tinput_size\tbatch\tblock\tdensity\ttype\tpasses";
const std::string kRow = "64\t48\t8\t4\t0.25\tfloat\tall";

TEST(PlanTable, GivesARowTheTilesOfItsColumn) {
  const std::string result =
      planned(kHeader + "\ttiles\n" + kRow + "\t1\n" + kRow + "\t6\n" + kRow + "\t\n");
  const io::Table table = io::read_table(result, "result");
  const auto tiles = [&](std::size_t row) {
    std::int64_t product = 1;
    for (const char* column : {"our_X", "our_Y", "our_Z"})
      product *= std::stoll(std::string(table.rows[row].cells[table.need(column)]));
    return product;
  };
  EXPECT_EQ(tiles(0), 1);
  EXPECT_GT(tiles(1), 1);
  EXPECT_LE(tiles(1), 6);
  EXPECT_GT(tiles(2), 6);
}

TEST(PlanTable, LeavesFiguresEmptyWithoutAPlan) {
  planner::Options options;
  options.available_memory_proportion = 1e-6;
  EXPECT_THAT(planned(kHeader + "\n" + kRow + "\n", options), HasSubstr(kRow + "\t\t\t\t\t\t\t\t"));
}

TEST(PlanTable, NeedsNoLineEndAtTheEndAndNoRows) {
  EXPECT_THAT(planned(kHeader), EndsWith("\tour_ms"));
  EXPECT_THAT(planned(kHeader + "\r\n" + kRow), AllOf(HasSubstr("our_ms\r\n"), HasSubstr(kRow)));
}

std::string message_of(const std::string& text, const planner::Options& options = {},
                       ErrorCode code = ErrorCode::BadInput) {
  try {
    planned(text, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  return "accepted";
}

// The message for a good row followed by this one.
std::string message_of_row(const std::string& row) {
  return message_of(kHeader + "\n" + kRow + "\n" + row + "\n");
}

TEST(PlanTable, PlansSizesThatAreNoMultipleOfTheBlock) {
  Problem problem;
  problem.size = {1, 64, 47, 8};
  problem.block = {5, 5};
  problem.density = 0.25;
  problem.data_type = DataType::Float;
  problem.grad_a = problem.grad_w = true;
  const planner::Plan plan = planner::plan_or_throw(problem, device::machine_preset("gc200"));
  const std::string result = planned(kHeader + "\n64\t47\t8\t5\t0.25\tfloat\tall\n");
  const io::Table table = io::read_table(result, "planned");
  EXPECT_EQ(table.rows[0].cells[table.need("our_cycles")], std::to_string(plan.cost.cycles.value));
}

TEST(PlanTable, RefusesABadRowByPlaceColumnValueAndRange) {
  EXPECT_EQ(message_of_row("0\t48\t8\t4\t0.25\tfloat\tall"),
            "my.tsv:3: output_size is \"0\"; it must be a whole number in 1..2147483647");
  EXPECT_THAT(message_of_row("64\t2147483648\t8\t4\t0.25\tfloat\tall"), HasSubstr("input_size is"));
  EXPECT_THAT(message_of_row("64\t48\t8.5\t4\t0.25\tfloat\tall"),
              HasSubstr("batch is \"8.5\"; it"));
  EXPECT_THAT(message_of_row("64\t48\t\t4\t0.25\tfloat\tall"), HasSubstr("batch is \"\"; it must"));
  EXPECT_THAT(message_of_row("64\t48\t8\t0\t0.25\tfloat\tall"), HasSubstr("block is \"0\"; it"));
  EXPECT_EQ(message_of_row("64\t48\t8\t4\t1.5\tfloat\tall"),
            "my.tsv:3: density is \"1.5\"; it must be a number in 0..1");
  EXPECT_THAT(message_of_row("64\t48\t8\t4\tnan\tfloat\tall"), HasSubstr("density is \"nan\""));
  EXPECT_THAT(message_of_row("64\t48\t8\t4\t1\tint\tall"),
              HasSubstr("type is \"int\"; it must be float or half"));
  EXPECT_THAT(message_of_row("64\t48\t8\t4\t1\thalf\tsome"), HasSubstr("all, fwd, bwd or wu"));
  EXPECT_EQ(message_of_row("64\t48"),
            "my.tsv:3: the row has 2 cells; it must have 7, like the header");
  EXPECT_THAT(message_of_row(""), HasSubstr("my.tsv:3: the row has 1 cells"));
  EXPECT_THAT(message_of(kHeader + "\ttiles\n" + kRow + "\t1473\n"),
              HasSubstr("my.tsv:2: tiles is \"1473\"; it must be a whole number in 1..1472"));
}

TEST(PlanTable, RefusesABadHeader) {
  EXPECT_THAT(message_of(""), HasSubstr("my.tsv:1: the header line is missing"));
  EXPECT_THAT(message_of("output_size\tbatch\n"),
              HasSubstr("my.tsv:1: column input_size is missing; the columns are output_size, b"));
  EXPECT_THAT(message_of(kHeader + "\tnote\tnote\n"), HasSubstr("column note appears twice"));
  EXPECT_THAT(message_of(kHeader + "\tour_nz\n"), HasSubstr("already has a column our_nz"));
}

TEST(PlanTable, PutsThePlaceBeforeWhatTheOptionsMakeImpossible) {
  planner::Options options;
  options.constraints.x = 17;
  EXPECT_THAT(message_of(kHeader + "\n" + kRow + "\n", options, ErrorCode::InvalidArgument),
              StartsWith("my.tsv:2: planConstraints.partition.x is 17"));
}

TEST(PlanTable, RunsFromTheCommandLineAndFromStandardInput) {
  const std::string path = std::string(TESSERA_SOURCE_DIR) + "/tests/data/popsparse_plans.tsv";
  const std::vector<std::string> command{TESSERA_TOOL, "plan", "--cost-model=popsparse"};
  std::vector<std::string> of_file = command;
  of_file.push_back("--table=" + path);
  const test::Outcome outcome = test::run(of_file);
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  expect_recorded_figures(outcome.out);
  const test::Outcome piped = test::run(
      {"sh", "-c", std::string(TESSERA_TOOL) + " plan --cost-model popsparse --table - < " + path});
  EXPECT_EQ(piped.exit, 0) << piped.err;
  expect_recorded_figures(piped.out);
  const test::TemporaryFolder folder;
  const std::string bad = folder.write("bad.tsv", kHeader + "\n" + kRow + "\n1\n");
  const test::Outcome refused = test::run({TESSERA_TOOL, "plan", "--table=" + bad});
  EXPECT_EQ(refused.exit, 3);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, HasSubstr("bad.tsv:3: the row has 1 cells"));
}

}  // namespace
}  // namespace tessera::tools
