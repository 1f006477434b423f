#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/io/array.hpp"
#include "tessera/sparse/fit_range.hpp"
#include "tessera/tests/support/process.hpp"
#include "tessera/tools/run/run.hpp"

namespace tessera::tools {
namespace {

using testing::HasSubstr;

// A matrix of one full row.
sparse::Csr<double> row(const std::vector<double>& values) {
  sparse::Csr<double> matrix;
  matrix.rows = 1;
  matrix.cols = static_cast<std::int64_t>(values.size());
  matrix.row_begin = {0, matrix.cols};
  for (std::size_t i = 0; i < values.size(); ++i) matrix.col.push_back(std::int32_t(i));
  matrix.values = values;
  return matrix;
}

int exponent(const std::vector<double>& values, DataType type) {
  return sparse::fit_range(row(values), type, "here").exponent;
}

TEST(FitRange, LeavesWhatFitsAlone) {
  EXPECT_EQ(exponent({}, DataType::Half), 0);
  EXPECT_EQ(exponent({0, 0}, DataType::Half), 0);
  EXPECT_EQ(exponent({1, -0.25}, DataType::Half), 0);
  EXPECT_EQ(exponent({0x1p13, -0x1p13}, DataType::Half), 0);
  EXPECT_EQ(exponent({0x1p-10}, DataType::Half), 0);
  EXPECT_EQ(exponent({0x1p99, 0x1p99}, DataType::Float), 0);
  EXPECT_EQ(exponent({0x1p-100}, DataType::Float), 0);
}

TEST(FitRange, ScalesDownOneStepBeyondTheLargestSum) {
  EXPECT_EQ(exponent({0x1p13, -0x1p13, 1}, DataType::Half), -1);
  EXPECT_EQ(exponent({0x1p99, 0x1p99, 0x1p60}, DataType::Float), -1);
}

TEST(FitRange, ScalesUpOneStepBelowTheSmallestLargestValue) {
  EXPECT_EQ(exponent({0x1.8p-11, 0}, DataType::Half), 11);
  EXPECT_EQ(exponent({-0x1p-101}, DataType::Float), 101);
  // 2^15 values: the sums have room for 2^-1 each.
  EXPECT_EQ(exponent(std::vector<double>(1 << 15, 0x1p-20), DataType::Half), 19);
}

TEST(FitRange, HoldsValuesAtBothEndsOfDouble) {
  const double largest = std::numeric_limits<double>::max();
  for (const DataType type : {DataType::Float, DataType::Half})
    for (const double v : {largest, 1e308, 1e9, 1.0, 1e-9, 1e-300, 0x1p-1074}) {
      const sparse::RangeFit fit = sparse::fit_range(row({v, -v, v}), type, "here");
      const bool is_lost = type == DataType::Half && v < 0x1p-1060;  // beyond the largest scale
      EXPECT_EQ(fit.lost, is_lost ? 3 : 0) << v;
      for (std::size_t i = 0; !is_lost && i < 3; ++i)
        EXPECT_NEAR(fit.weights.values[i] / std::ldexp(i == 1 ? -v : v, fit.exponent), 1.0, 0x1p-11)
            << v;
    }
}

TEST(FitRange, CountsWhatRoundsToZero) {
  const sparse::RangeFit fit =
      sparse::fit_range(row({1, 0, 0x1p-24, 0x1p-25, -1e-9}), DataType::Half, "here");
  EXPECT_EQ(fit.nonzeros, 4);
  EXPECT_EQ(fit.lost, 2);
  EXPECT_EQ(sparse::fit_range(row({1, 1e-9}), DataType::Float, "here").lost, 0);
}

TEST(FitRange, RefusesWhatIsNotFiniteAndNamesThePlace) {
  for (const double v : {std::nan(""), std::numeric_limits<double>::infinity()}) try {
      sparse::fit_range(row({1, v}), DataType::Half, "weights.mtx");
      ADD_FAILURE() << v;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::BadInput);
      EXPECT_THAT(error.what(), HasSubstr("weights.mtx"));
    }
}

TEST(ExitCodeOf, IsOneExactlyWhenSomeResultIsWrong) {
  LayerRun run;
  report::LayerReport& report = run.report;
  EXPECT_EQ(exit_code_of(run), kOk);
  report.passes.push_back({Pass::Fwd, {}, verify::Verdict{.compared = 6}});
  report.passes.push_back({Pass::GradA, {}, {}});
  EXPECT_EQ(exit_code_of(run), kOk);
  report.passes.push_back({Pass::GradW, {}, verify::Verdict{.compared = 6, .wrong = 1}});
  EXPECT_EQ(exit_code_of(run), kCheckFailed);
  EXPECT_EQ(int(kCheckFailed), 1);
}

// Through the program: values of these magnitudes, in this type; what the first line must say.
void expect_pass(const std::string& magnitude, const std::string& type, const std::string& note) {
  const test::TemporaryFolder folder;
  std::string text = "%%MatrixMarket matrix array real general\n4 200\n";
  for (int i = 0; i < 800; ++i)
    text += (i % 3 == 0 ? "-" : "") + std::to_string(1 + i % 9) + magnitude + "\n";
  const test::Outcome outcome =
      test::run({TESSERA_SPARSE_FC_LAYER, "--batch-size=4", "--tiles-per-ipu=24",
                 "--data-type=" + type, "--matrix=" + folder.write("values.mtx", text)});
  EXPECT_EQ(outcome.exit, 0) << magnitude << " " << type << ": " << outcome.err << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr(note));
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("round to zero")));
}

TEST(SparseFcLayerValues, OfAnyMagnitudeAreScaledAndChecked) {
  expect_pass("e307", "float", "(values times 2^-930 to stay in range)");
  expect_pass("e307", "half", "(values times 2^-1016 to stay in range)");
  expect_pass("e-9", "half", "(values times 2^27 to stay in range)");
  expect_pass("e-44", "float", "(values times 2^143 to stay in range)");
  expect_pass("e-30", "float", "values.mtx\n");
}

TEST(SparseFcLayerValues, ThatRoundToZeroAreCounted) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("wide.mtx",
                                        "%%MatrixMarket matrix coordinate real general\n"
                                        "4 4 3\n1 1 1e5\n2 2 1\n3 3 1e-9\n");
  const auto says = [&](const std::string& type) {
    const test::Outcome outcome =
        test::run({TESSERA_SPARSE_FC_LAYER, "--matrix=" + path, "--data-type=" + type});
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    return outcome.out;
  };
  EXPECT_THAT(says("half"),
              HasSubstr("(values times 2^-3 to stay in range; 1 of 3 values round to zero)"));
  EXPECT_THAT(says("float"), HasSubstr("wide.mtx\n"));
}

// S is the identity, so Q is the matrix of the weights.
TEST(SparseFcLayerValues, OfWrittenResultsAreThoseOfTheWeightsAsGiven) {
  const test::TemporaryFolder folder;
  Matrix<float> identity(4, 4);
  for (std::int64_t i = 0; i < 4; ++i) identity(i, i) = 1;
  const std::string input = folder.write("s.npy", io::write_npy(std::as_const(identity).view()));
  const std::string weights = folder.write("small.mtx",
                                           "%%MatrixMarket matrix coordinate real general\n"
                                           "4 4 3\n1 1 0.000125\n2 3 0.0005\n4 1 -0.00025\n");
  for (const char* machine : {"host", "gc200"}) {
    const test::Outcome outcome =
        test::run({TESSERA_SPARSE_FC_LAYER, "--quiet", "--matrix=" + weights, "--input=" + input,
                   "--data-type=half", "--output-dir=" + (folder / "out"),
                   std::string("--machine=") + machine});
    ASSERT_EQ(outcome.exit, 0) << outcome.err;
    const std::string name = folder / "out/q.npy";
    const io::Array q = io::read_npy(read_file(name), name);
    ASSERT_EQ(q.shape, (std::vector<std::int64_t>{4, 4}));
    EXPECT_NEAR(q.values[0], 0.000125, 1e-7) << machine;
    EXPECT_NEAR(q.values[6], 0.0005, 4e-7) << machine;
    EXPECT_NEAR(q.values[12], -0.00025, 2e-7) << machine;
    const auto report = nlohmann::json::parse(read_file(folder / "out/report.json"));
    EXPECT_EQ(report.at("weight_scale"), 2048.0);
  }
}

TEST(SparseFcLayerValues, OfTheInputAreRefusedBeyondTheRangeOfTheType) {
  const test::TemporaryFolder folder;
  const auto outcome_of = [&](double value, const std::string& type) {
    Matrix<double> s(8, 3);
    s(5, 1) = value;
    const std::string path = folder.write("s.npy", io::write_npy(std::as_const(s).view()));
    return test::run({TESSERA_SPARSE_FC_LAYER, "--input-size=8", "--output-size=8", "--density=0.5",
                      "--tiles-per-ipu=4", "--data-type=" + type, "--input=" + path});
  };
  for (const auto& [value, type] : std::vector<std::pair<double, std::string>>{
           {1e6, "half"}, {std::nan(""), "half"}, {1e39, "float"}, {-HUGE_VAL, "bfloat16"}}) {
    const test::Outcome outcome = outcome_of(value, type);
    EXPECT_EQ(outcome.exit, 3) << value << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr("S[5][1] is ")) << value;
    EXPECT_THAT(outcome.err, HasSubstr(type + " holds -")) << value;
  }
  EXPECT_EQ(outcome_of(65504, "half").exit, 0);
}

}  // namespace
}  // namespace tessera::tools
