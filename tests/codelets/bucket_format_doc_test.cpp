#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tessera/base/matrix.hpp"
#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/codelets/kernel.hpp"
#include "tessera/tests/codelets/bucket_format_page.hpp"

// Reads the examples of docs/bucket-format.md, so that the page cannot contradict the code: every
// named field must hold the number beside it, every distance must lead to the named place, and the
// kernels must compute the product of the matrix on the page.
namespace tessera::codelets {
namespace {

using test::example, test::matrix_of, test::numbers, test::Part, test::parts_of, test::words_of;
using test::Lines, test::Words;

const std::vector<std::string> kElementExamples = {"element-1", "element-2",      "element-3",
                                                   "element-4", "element-grad-w", "element-grad-a"};
const std::vector<std::string> kBlockExamples = {"block", "block-grad-w"};

std::map<std::string, std::int32_t> fields(const ElementHeader& h) {
  return {
      {"sub_group", h.sub_group}, {"x_partition", h.x_partition},   {"y_partition", h.y_partition},
      {"non_zeros", h.non_zeros}, {"next_record", h.next_record},   {"z", h.z},
      {"last_row", h.last_row},   {"first_output", h.first_output}, {"workers", h.workers}};
}

std::map<std::string, std::int32_t> fields(const BlockHeader& h) {
  return {{"sub_group", h.sub_group},          {"x_partition", h.x_partition},
          {"y_partition", h.y_partition},      {"non_zeros", h.non_zeros},
          {"next_record", h.next_record},      {"last_row", h.last_row},
          {"grad_w_workers", h.grad_w_workers}};
}

template <class Header>
void expect_named_fields(const std::string& name) {
  const Words words = words_of(name);
  const auto expected = fields(load<Header>(words.data()));
  std::set<std::string> seen;
  for (const Part& part : parts_of(name)) {
    const auto field = expected.find(part.name);
    if (field == expected.end()) continue;
    ASSERT_EQ(part.words.size(), 1u) << part.name;
    EXPECT_EQ(part.words[0], field->second) << part.name;
    seen.insert(part.name);
  }
  EXPECT_EQ(seen.size(), expected.size()) << name << " names only some fields of the header";
}

TEST(BucketFormatPage, NamesEveryFieldOfTheHeadersAtItsPlace) {
  expect_named_fields<ElementHeader>("element-1");
  expect_named_fields<BlockHeader>("block");
}

TEST(BucketFormatPage, CountsWordsWithoutAGap) {
  for (const auto& group : {kElementExamples, kBlockExamples})
    for (const std::string& name : group) {
      std::size_t expected = 0;
      for (const Part& part : parts_of(name)) {
        EXPECT_EQ(part.offset, expected) << name;
        EXPECT_FALSE(part.words.empty()) << name << " word " << part.offset;
        expected += part.words.size();
      }
      EXPECT_GT(expected, 0u) << name;
    }
}

// Returns the name of the part that begins at a word; empty if none does.
std::string part_at(const std::vector<Part>& parts, std::size_t offset) {
  for (const Part& part : parts)
    if (part.offset == offset) return part.name;
  return {};
}

TEST(BucketFormatPage, DistancesLeadToRowsAndToTheEndMarker) {
  for (const std::string& name : kElementExamples) {
    const auto header = load<ElementHeader>(words_of(name).data());
    const std::vector<Part> parts = parts_of(name);
    EXPECT_EQ(part_at(parts, std::size_t(header.next_record)), "end") << name;
    EXPECT_EQ(part_at(parts, std::size_t(header.first_output)), "OutputEntry") << name;
  }
  for (const std::string& name : kBlockExamples) {
    const auto header = load<BlockHeader>(words_of(name).data());
    EXPECT_EQ(part_at(parts_of(name), std::size_t(header.next_record)), "end") << name;
  }
}

// The sums over the parts of an example.
struct Counts {
  std::int64_t rows = 0, non_zeros = 0, workers = 0, grad_w_workers = 0;
  bool rows_are_whole = true;  // behind every OutputEntry stand as many words as it says
};

Counts counts_of(const std::string& name, bool block) {
  Counts counts;
  const std::vector<Part> parts = parts_of(name);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    counts.workers += parts[i].name == "WorkerEntry";
    counts.grad_w_workers += parts[i].name == "GradWWorkerEntry";
    if (parts[i].name != "OutputEntry") continue;
    ++counts.rows;
    const bool pairs = parts.at(i + 1).name == "pairs";
    const std::int64_t listed = std::int64_t(parts[i + 1].words.size()) / (pairs ? 2 : 1);
    counts.rows_are_whole &= parts[i].words.at(1) + block == listed;
    counts.non_zeros += listed;
  }
  return counts;
}

// Returns whether a kernel may walk the words of an example.
bool is_whole(const std::string& name, bool block) {
  const Counts counts = counts_of(name, block);
  const Words words = words_of(name);
  const std::int64_t rows = 1 + (block ? load<BlockHeader>(words.data()).last_row
                                       : load<ElementHeader>(words.data()).last_row);
  return counts.rows_are_whole && counts.rows == rows && words.back() == 0;
}

TEST(BucketFormatPage, CountsRowsNonZerosAndWorkersAsTheyStand) {
  for (const std::string& name : kElementExamples) {
    const Words words = words_of(name);
    const auto header = load<ElementHeader>(words.data());
    const Counts counts = counts_of(name, false);
    EXPECT_TRUE(is_whole(name, false)) << name;
    EXPECT_EQ(header.non_zeros, counts.non_zeros) << name;
    EXPECT_EQ(header.workers, counts.workers) << name;
    EXPECT_EQ(header.z, 4) << name;
    const bool with_table = counts.grad_w_workers > 0;
    const std::int64_t table = kWords<ElementHeader> + counts.workers * kWords<WorkerEntry>;
    if (with_table) {
      EXPECT_EQ(words.at(std::size_t(table)), counts.grad_w_workers) << name;
    }
    EXPECT_EQ(header.first_output,
              table + with_table + counts.grad_w_workers * kWords<GradWWorkerEntry>)
        << name;
  }
  for (const std::string& name : kBlockExamples) {
    const auto header = load<BlockHeader>(words_of(name).data());
    const Counts counts = counts_of(name, true);
    EXPECT_TRUE(is_whole(name, true)) << name;
    EXPECT_EQ(header.non_zeros, counts.non_zeros * 16) << name;
    EXPECT_EQ(header.grad_w_workers, counts.grad_w_workers) << name;
  }
}

TEST(BucketFormatPage, WorkersFindTheirRows) {
  std::int64_t workers = 0, grad_w_workers = 0;
  for (const auto& group : {kElementExamples, kBlockExamples})
    for (const std::string& name : group) {
      const Words words = words_of(name);
      const std::vector<Part> parts = parts_of(name);
      for (const Part& part : parts) {
        if (part.name == "WorkerEntry") {
          const auto entry = load<WorkerEntry>(words.data() + part.offset);
          EXPECT_EQ(part_at(parts, part.offset + entry.first_output), "OutputEntry") << name;
          ++workers;
        }
        if (part.name == "GradWWorkerEntry") {
          const auto entry = load<GradWWorkerEntry>(words.data() + part.offset);
          EXPECT_EQ(part_at(parts, part.offset + entry.first_output), "OutputEntry") << name;
          ++grad_w_workers;
        }
      }
    }
  EXPECT_EQ(workers, 4 + 2 + 2 + 4 + 4 + 4);
  EXPECT_EQ(grad_w_workers, 3 + 3);
}

Matrix<float> operand(std::int64_t rows, std::int64_t z) {
  Matrix<float> m(rows, z);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < z; ++c) m(r, c) = float(r * z + c + 1);
  return m;
}

Matrix<float> dense_product(const Matrix<float>& r, const Matrix<float>& s) {
  Matrix<float> q(r.rows(), s.cols());
  for (std::int64_t x = 0; x < r.rows(); ++x)
    for (std::int64_t y = 0; y < r.cols(); ++y)
      for (std::int64_t z = 0; z < s.cols(); ++z) q(x, z) += r(x, y) * s(y, z);
  return q;
}

Matrix<float> transpose(const Matrix<float>& m) {
  Matrix<float> t(m.cols(), m.rows());
  for (std::int64_t r = 0; r < m.rows(); ++r)
    for (std::int64_t c = 0; c < m.cols(); ++c) t(c, r) = m(r, c);
  return t;
}

Matrix<float> part_of(const Matrix<float>& m, Range rows, Range cols) {
  Matrix<float> part(rows.size(), cols.size());
  for (std::int64_t r = 0; r < rows.size(); ++r)
    for (std::int64_t c = 0; c < cols.size(); ++c) part(r, c) = m(rows.begin + r, cols.begin + c);
  return part;
}

KernelKey key(Operation operation, Format format) {
  return {operation, format, DataType::Float, DataType::Float, 16};
}

// Returns the product of one bucket of the page; BlockShape{} stands for elements.
Matrix<float> product(Operation operation, const std::string& name,
                      const std::vector<float>& values, const Matrix<float>& in,
                      std::int64_t out_rows, BlockShape block = {}) {
  Matrix<float> out(out_rows, in.cols());
  const Words meta = words_of(name);
  EXPECT_TRUE(is_whole(name, !block.is_element())) << name;
  if (testing::Test::HasFailure()) return out;
  KernelArgs args;
  args.meta = meta.data();
  args.values = values.data();
  args.sub_group = meta.at(0);
  args.block = block;
  args.in = {in.elements().data(), in.rows(), in.cols(), in.cols()};
  args.out = {out.elements().data(), out.rows(), out.cols(), out.cols()};
  find_kernel(key(operation, block.is_element() ? Format::Element : Format::Block)).reference(args);
  return out;
}

std::vector<float> gradients(const std::string& name, std::size_t count,
                             const Matrix<float>& q_grad, const Matrix<float>& s,
                             BlockShape block = {}) {
  std::vector<float> result(count);
  const Words meta = words_of(name);
  EXPECT_TRUE(is_whole(name, !block.is_element())) << name;
  if (testing::Test::HasFailure()) return result;
  KernelArgs args;
  args.meta = meta.data();
  args.gradients = result.data();
  args.sub_group = meta.at(0);
  args.block = block;
  args.in = {q_grad.elements().data(), q_grad.rows(), q_grad.cols(), q_grad.cols()};
  args.in_s = {s.elements().data(), s.rows(), s.cols(), s.cols()};
  find_kernel(key(Operation::GradW, block.is_element() ? Format::Element : Format::Block))
      .reference(args);
  return result;
}

std::vector<float> cell_values(std::size_t cell) {
  const Lines& lines = example("values elements");
  return cell < lines.size() ? numbers<float>(lines[cell]) : std::vector<float>{};
}

TEST(BucketFormatPage, ElementBucketsHoldTheMatrixThatIsDrawn) {
  const Matrix<float> matrix = matrix_of("elements");
  ASSERT_EQ(matrix.rows(), 4);
  ASSERT_EQ(matrix.cols(), 6);
  for (std::int64_t cell = 0; cell < 4; ++cell) {
    const Range x{cell / 2 * 2, cell / 2 * 2 + 2}, y{cell % 2 * 3, cell % 2 * 3 + 3};
    const Matrix<float> r = part_of(matrix, x, y), s = operand(3, 4), q_grad = operand(2, 4);
    const std::string name = "element-" + std::to_string(cell + 1);
    const std::vector<float> values = cell_values(std::size_t(cell));
    EXPECT_EQ(load<ElementHeader>(words_of(name).data()).sub_group,
              sub_group_id(cell / 2, cell % 2, 2));
    EXPECT_EQ(product(Operation::Fwd, name, values, s, 2), dense_product(r, s)) << name;
    EXPECT_EQ(product(Operation::GradATransposed, name, values, q_grad, 3),
              dense_product(transpose(r), q_grad))
        << name;
  }
}

TEST(BucketFormatPage, TheOtherTwoBucketsOfTheFirstCellHoldTheSameCell) {
  const Matrix<float> r = part_of(matrix_of("elements"), {0, 2}, {0, 3});
  const Matrix<float> s = operand(3, 4), q_grad = operand(2, 4);
  EXPECT_EQ(product(Operation::Fwd, "element-grad-w", cell_values(0), s, 2), dense_product(r, s));
  EXPECT_EQ(product(Operation::GradA, "element-grad-a", cell_values(0), q_grad, 3),
            dense_product(transpose(r), q_grad));
  const Matrix<float> all = dense_product(q_grad, transpose(s));
  EXPECT_EQ(gradients("element-grad-w", 3, q_grad, s),
            (std::vector<float>{all(0, 0), all(0, 1), all(1, 1)}));
}

TEST(BucketFormatPage, BlockBucketsHoldTheMatrixThatIsDrawn) {
  const BlockShape block{4, 4};
  const Matrix<float> r = matrix_of("blocks"), s = operand(8, 3);
  ASSERT_EQ(r.rows(), 8);
  ASSERT_EQ(example("values blocks").size(), 1u);
  const std::vector<float> values = numbers<float>(example("values blocks")[0]);
  ASSERT_EQ(values.size(), 48u);
  for (const std::string& name : kBlockExamples) {
    EXPECT_EQ(product(Operation::Fwd, name, values, s, 8, block), dense_product(r, s)) << name;
    EXPECT_EQ(product(Operation::GradATransposed, name, values, s, 8, block),
              dense_product(transpose(r), s))
        << name;
    // The value of each element is its index among the values, plus one.
    const std::vector<float> got = gradients(name, 48, s, s, block);
    const Matrix<float> all = dense_product(s, transpose(s));
    for (std::int64_t x = 0; x < 8; ++x)
      for (std::int64_t y = 0; y < 8; ++y)
        if (r(x, y) != 0) {
          EXPECT_EQ(got[std::size_t(r(x, y)) - 1], all(x, y)) << name;
        }
  }
}

// Parses "<name>  <limit>  <sum>" with two spaces or more between the parts.
std::int64_t limit_of(const std::string& what) {
  for (const std::string& line : example("limits"))
    if (line.rfind(what + "  ", 0) == 0) return numbers<std::int64_t>(line.substr(what.size()))[0];
  ADD_FAILURE() << "the page has no limit for " << what;
  return 0;
}

TEST(BucketFormatPage, StatesTheLargestCountsThatFitSixteenBits) {
  const auto expect_last = [](const std::string& what, auto largest_word) {
    const std::int64_t limit = limit_of(what);
    EXPECT_LE(largest_word(limit), 65535) << what;
    EXPECT_GT(largest_word(limit + 1), 65535) << what;
  };
  const auto column_word = [](DataType type) {
    return [type](std::int64_t columns) { return (columns - 1) * type_factor(type) * 4; };
  };
  expect_last("columns of a cell, float, z 4", column_word(DataType::Float));
  expect_last("columns of a cell, half, z 4", column_word(DataType::Half));
  for (const std::int64_t side : {4, 8, 16})
    expect_last("blocks of " + std::to_string(side) + " x " + std::to_string(side) + " in a record",
                [side](std::int64_t blocks) { return blocks * side * side; });
  expect_last("values of a GradA record, float",
              [](std::int64_t values) { return (values - 1) * type_factor(DataType::Float); });
  expect_last("words of a record", [](std::int64_t words) { return words; });
  expect_last("cells", [](std::int64_t cells) { return sub_group_id(0, cells - 1, cells); });
}

}  // namespace
}  // namespace tessera::codelets
