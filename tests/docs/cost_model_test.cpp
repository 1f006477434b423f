// Compares docs/cost-model.md with the code: every formula over ranges of sizes, and every
// constant.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tessera/codelets/cost/matmul_cycles.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/tests/docs/formula.hpp"
#include "tessera/tests/docs/page.hpp"

namespace tessera::test {
namespace {

using codelets::LinearCycles, codelets::MatMulKernel, codelets::Method;
using Row = std::vector<std::string>;

const std::string& page() {
  static const std::string text = page_text("docs/cost-model.md");
  return text;
}

// Returns the rows of the tables that begin with "method" and have this number of columns.
std::vector<Row> method_rows(std::size_t columns) {
  std::vector<Row> rows = table_rows(page(), "method");
  std::erase_if(rows, [=](const Row& row) { return row.size() != columns; });
  return rows;
}

Method method_of(const std::string& name) {
  for (int i = 0; i <= int(Method::BlockGradWAmp); ++i)
    if (to_string(Method(i)) == name) return Method(i);
  throw std::runtime_error("no method " + name);
}

DataType type_of(const std::string& name) {
  return name == "half" ? DataType::Half : DataType::Float;
}

LinearCycles told(const Row& row, std::size_t first, const Names& names) {
  return {evaluate(row[first], names), evaluate(row[first + 1], names),
          evaluate(row[first + 2], names)};
}

void expect_same(const LinearCycles& told, const LinearCycles& coded, const std::string& what) {
  EXPECT_EQ(told.start, coded.start) << what;
  EXPECT_EQ(told.per_row, coded.per_row) << what;
  EXPECT_EQ(told.per_nonzero, coded.per_nonzero) << what;
}

constexpr std::int64_t kMostColumns = 40;

TEST(CostModelPage, TellsWhatWorkersOfElementMethodsTake) {
  const auto rows = method_rows(6);
  std::set<std::string> seen;
  for (const std::string method :
       {"ElementFwd", "ElementGradA", "ElementTranspose", "ElementGradW"})
    for (const std::string type : {"float", "half"})
      for (std::int64_t z = 0; z <= kMostColumns; ++z) {
        const auto fits = [&](const std::string& of) {
          return std::find_if(rows.begin(), rows.end(), [&](const Row& row) {
            return row[0] == method && row[1] == type && row[2] == of;
          });
        };
        auto row = fits(std::to_string(z));
        if (row == rows.end()) row = fits("else");
        ASSERT_NE(row, rows.end()) << method << " " << type;
        seen.insert((*row)[0] + (*row)[1] + (*row)[2]);
        const MatMulKernel kernel{.method = method_of(method), .data_type = type_of(type)};
        expect_same(told(*row, 3, {{"z", z}}), worker_cycles(kernel, z),
                    method + " " + type + " z " + std::to_string(z));
      }
  EXPECT_EQ(seen.size(), rows.size()) << "rows for which there is no kernel";
}

// A kernel of a row of blocks, and the names in its formulas.
struct BlockCase {
  MatMulKernel kernel;
  Names names;
};

BlockCase block_case(Method method, DataType type, DataType sums, std::int64_t side,
                     std::int64_t units, std::int64_t z) {
  const bool half = type == DataType::Half;
  return {{.method = method,
           .data_type = type,
           .partials_type = sums,
           .block = {side, side},
           .conv_units = units},
          {{"z", z},
           {"side", side},
           {"units", units},
           {"half", half},
           {"k", (z + (half ? 15 : 7)) / (half ? 16 : 8)},
           {"kept", method == Method::BlockFwd ? 3 : 0}}};
}

TEST(CostModelPage, TellsWhatWorkersOfBlockMethodsTake) {
  const auto rows = method_rows(7);
  EXPECT_EQ(rows.size(), 28u);  // 3 pairs of types, 3 sides, 3 kinds, one more for fewer units
  for (const Row& row : rows)
    for (std::int64_t z = 0; z <= kMostColumns; ++z) {
      std::istringstream methods(row[0]);
      for (std::string method; std::getline(methods >> std::ws, method, ',');) {
        const std::size_t comma = row[1].find(", ");
        const BlockCase c = block_case(method_of(method), type_of(row[1].substr(0, comma)),
                                       type_of(row[1].substr(comma + 2)), std::stoll(row[2]),
                                       std::stoll(row[3]), z);
        expect_same(told(row, 4, c.names), worker_cycles(c.kernel, z),
                    method + " " + row[1] + " side " + row[2] + " z " + std::to_string(z));
      }
    }
}

TEST(CostModelPage, TellsWhatSupervisorsLoad) {
  const auto rows = method_rows(4);
  EXPECT_EQ(rows.size(), 3u);
  for (const Row& row : rows)
    for (const DataType type : {DataType::Float, DataType::Half})
      for (const std::int64_t side : {4, 8, 16})
        for (const std::int64_t units : {8, 16})
          for (std::int64_t z = 0; z <= kMostColumns; ++z) {
            const BlockCase c = block_case(method_of(row[0]), type, type, side, units, z);
            expect_same(told(row, 1, c.names), supervisor_load_cycles(c.kernel, z),
                        row[0] + " side " + std::to_string(side) + " z " + std::to_string(z));
          }
}

TEST(CostModelPage, TellsWhatScansTake) {
  const auto rows = method_rows(5);
  EXPECT_EQ(rows.size(), 8u);
  for (const Row& row : rows) {
    const codelets::ScanCycles told{std::stoll(row[1]), std::stoll(row[2]), std::stoll(row[3]),
                                    std::stoll(row[4])};
    EXPECT_EQ(told, scan_cycles(method_of(row[0]))) << row[0];
  }
}

// Evaluates the lines "name = formula" of the page in their order.
Names work_out(Names names) {
  const auto formulas = blocks(page(), "formulas");
  std::istringstream lines(formulas.at(0));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find(" = ");
    names[line.substr(0, equals)] = evaluate(line.substr(equals + 3), names);
  }
  return names;
}

struct VectorCase {
  DataType from, to;
  std::int64_t n, workers;
};

void expect_vector_steps(const VectorCase& c) {
  const std::int64_t half = c.from == DataType::Half, side = 4 << c.n % 3, depth = 1 + c.n % 5;
  const std::int64_t bus = 1 + c.n % 3, consecutive = 1 + c.n % 7, tiles = 1 + c.n % 11;
  const BlockShape block{1 + c.n % 9, 1 + c.n % 7};
  const bool both_half = half == 1 && c.to == DataType::Half;
  Names told = work_out({{"n", c.n},
                         {"bytes", c.n},
                         {"blocks", c.n},
                         {"block_rows", block.rows},
                         {"block_cols", block.cols},
                         {"workers", c.workers},
                         {"half", half},
                         {"to_float", c.to == DataType::Float},
                         {"narrower", both_half ? 4 : 2},
                         {"depth", depth},
                         {"side", side},
                         {"z", c.n % 50},
                         {"width", 4},
                         {"bus", bus},
                         {"consecutive", consecutive},
                         {"tiles", tiles},
                         {"rate", bus}});
  namespace of = codelets;
  EXPECT_EQ(told["zero"], of::zero_cycles(c.n, c.workers).value);
  EXPECT_EQ(told["cast"], of::cast_cycles(c.n, c.from, c.to, c.workers).value);
  EXPECT_EQ(told["reduce"], of::reduce_cycles(c.n, depth, c.from, c.to, c.workers).value);
  EXPECT_EQ(told["transpose"], of::transpose_blocks_cycles(c.n, block, c.from, c.workers).value);
  EXPECT_EQ(told["rearrange"], of::rearrange_cycles(c.n, side, c.n % 50, c.from, c.workers).value);
  EXPECT_EQ(told["arrange"], of::arrange_cycles(c.n, tiles, bus).value);
  EXPECT_EQ(told["exchange"], of::exchange_cycles(c.n, {4, bus}).value);
  EXPECT_EQ(told["broadcast"], of::broadcast_cycles(c.n, consecutive, tiles, {4, bus}).value);
}

TEST(CostModelPage, TellsWhatOtherStepsTake) {
  for (const DataType from : {DataType::Float, DataType::Half})
    for (const DataType to : {DataType::Float, DataType::Half})
      for (std::int64_t n = 0; n <= 400; ++n)
        for (const std::int64_t workers : {1, 5, 6}) {
          SCOPED_TRACE(testing::Message() << "n " << n << ", half " << int(from) << int(to)
                                          << ", workers " << workers);
          expect_vector_steps({from, to, n, workers});
          if (HasFailure()) return;
        }
}

TEST(CostModelPage, QuotesConstantsAsTheCodeHasThem) {
  const auto rows = table_rows(page(), "constant");
  EXPECT_GE(rows.size(), 12u);
  for (const Row& row : rows) {
    const std::regex assignment(R"(\b)" + row[0] + " = " + row[1] + "[;,]");
    EXPECT_TRUE(std::regex_search(page_text(row[2]), assignment))
        << row[2] << " has no " << row[0] << " = " << row[1];
  }
}

TEST(Formula, ComputesAndRefuses) {
  EXPECT_EQ(evaluate("2 * (3 + x) / 4 - 1", {{"x", 4}}), 2);
  EXPECT_EQ(evaluate("3 [x > 2] [x <= 4] + ceil(x, 3) + max(1, x % 3)", {{"x", 4}}), 6);
  EXPECT_EQ(evaluate("7 [x = 3]", {{"x", 4}}), 0);
  for (const char* bad : {"", "1 +", "y", "(1", "1 2", "4 / 0", "[1 ! 2]"})
    EXPECT_THROW(evaluate(bad, {{"x", 4}}), std::runtime_error) << bad;
}

}  // namespace
}  // namespace tessera::test
