// Compares the formulas of static kernels in docs/cost-model.md with the code.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/static_cycles.hpp"
#include "tessera/tests/docs/formula.hpp"
#include "tessera/tests/docs/page.hpp"

namespace tessera::test {
namespace {

using codelets::StaticKernel;
using Row = std::vector<std::string>;

std::vector<StaticKernel> kernels() {
  std::vector<StaticKernel> all;
  for (const std::int64_t side : {1, 4, 8, 16})
    for (const DataType type : {DataType::Half, DataType::Float})
      all.push_back({{side, side}, type});
  return all;
}

// Returns the row of the table for a kernel with z columns: that of z, or that of all others.
const Row* row_for(const std::vector<Row>& rows, const StaticKernel& kernel, std::int64_t z) {
  const std::string side = std::to_string(kernel.block.rows);
  const Row* found = nullptr;
  for (const Row& row : rows) {
    if (row.at(0) != side || row.at(1) != to_string(kernel.type)) continue;
    if (row.at(2) == std::to_string(z)) return &row;
    if (row.at(2) == "else") found = &row;
  }
  return found;
}

TEST(CostModelPage, TellsWhatWorkersOfStaticKernelsTake) {
  constexpr std::int64_t kMostColumns = 70;
  const std::vector<Row> rows = table_rows(page_text("docs/cost-model.md"), "static block");
  std::set<const Row*> seen;
  for (const StaticKernel& kernel : kernels())
    for (std::int64_t z = 1; z <= kMostColumns; ++z) {
      SCOPED_TRACE(std::to_string(kernel.block.rows) + " z " + std::to_string(z));
      const Row* row = row_for(rows, kernel, z);
      ASSERT_NE(row, nullptr);
      seen.insert(row);
      const auto told = [&](std::size_t cell) { return evaluate(row->at(cell), {{"z", z}}); };
      const codelets::LinearCycles coded = static_worker_cycles(kernel, z);
      EXPECT_EQ(told(3), coded.start);
      EXPECT_EQ(told(4), coded.per_row);
      EXPECT_EQ(told(5), coded.per_nonzero);
    }
  EXPECT_EQ(seen.size(), rows.size()) << "rows for which there is no kernel";
}

// Returns the formulas between code marks in the paragraph that begins with these words.
std::vector<std::string> formulas_after(const std::string& words) {
  const std::string text = page_text("docs/cost-model.md");
  const std::size_t begin = text.find(words);
  const std::string paragraph = text.substr(begin, text.find("\n\n", begin) - begin);
  const std::regex marked("`([^`]*)`");
  std::vector<std::string> formulas;
  for (std::sregex_iterator it(paragraph.begin(), paragraph.end(), marked), end; it != end; ++it)
    formulas.push_back((*it)[1]);
  return formulas;
}

TEST(CostModelPage, TellsWhatSupervisorsOfStaticKernelsTake) {
  const auto formulas = formulas_after("The load of the supervisor is");
  ASSERT_EQ(formulas.size(), 4u);
  for (const StaticKernel& kernel : kernels()) {
    const codelets::LinearCycles coded = static_supervisor_cycles(kernel);
    if (kernel.block.is_element()) {
      EXPECT_EQ(coded, codelets::LinearCycles{});
      continue;
    }
    const Names names{{"side", kernel.block.rows}, {"bytes", bytes_of(kernel.type)}};
    EXPECT_EQ(coded.start, evaluate(formulas[0], names));
    EXPECT_EQ(coded.per_row, evaluate(formulas[1], names));
    EXPECT_EQ(coded.per_nonzero, evaluate(formulas[2], names));
    const bool clears = kernel.type == DataType::Float && kernel.block.rows >= 8;
    EXPECT_EQ(static_zero_cycles(kernel, 800, 6).value,
              clears ? evaluate(formulas[3], {{"workers", 6}, {"bytes", 800}}) : 0);
  }
}

}  // namespace
}  // namespace tessera::test
