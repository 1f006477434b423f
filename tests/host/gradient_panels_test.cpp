#include "tessera/host/gradient_panels.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/random_matrix.hpp"

namespace tessera::host {
namespace {

// Operands of some batches, with the features or the batch first.
struct Batches {
  std::vector<Matrix<float>> q_grad, s;
  std::vector<GradientOperands> views;

  Batches(std::int64_t rows, std::int64_t cols, const std::vector<std::int64_t>& widths,
          bool batch_first = false) {
    for (std::size_t b = 0; b < widths.size(); ++b) {
      q_grad.push_back(random_matrix<float>(rows, widths[b], 5 + b));
      s.push_back(random_matrix<float>(cols, widths[b], 50 + b));
    }
    if (batch_first) {
      for (Matrix<float>& m : q_grad) m = turned(m);
      for (Matrix<float>& m : s) m = turned(m);
    }
    for (std::size_t b = 0; b < widths.size(); ++b) {
      const auto q_view = std::as_const(q_grad[b]).view(), s_view = std::as_const(s[b]).view();
      views.push_back(batch_first ? GradientOperands{q_view.transposed(), s_view.transposed()}
                                  : GradientOperands{q_view, s_view});
    }
  }
  static Matrix<float> turned(const Matrix<float>& from) {
    Matrix<float> to(from.cols(), from.rows());
    for (std::int64_t r = 0; r < from.rows(); ++r)
      for (std::int64_t c = 0; c < from.cols(); ++c) to(c, r) = from(r, c);
    return to;
  }
  double exact(std::int64_t row, std::int64_t col) const {
    double sum = 0;
    for (const GradientOperands& b : views)
      for (std::int64_t z = 0; z < b.s.cols; ++z)
        sum += double(b.q_grad(row, z)) * double(b.s(col, z));
    return sum;
  }
};

// Collects the panels; every element must come once.
Matrix<float> gradient_of(const Batches& batches, std::int64_t rows, std::int64_t cols,
                          PanelSize size, int threads) {
  const auto executor = make_executor(threads);
  Matrix<float> all(rows, cols);
  Matrix<std::int32_t> times(rows, cols);
  for_each_gradient_panel(size, batches.views, *executor,
                          [&](const PanelAt& at, MatrixView<const float> values) {
                            EXPECT_LT(at.thread, executor->threads());
                            EXPECT_EQ(values.rows, at.rows.size());
                            EXPECT_EQ(values.cols, at.cols.size());
                            for (std::int64_t r = 0; r < values.rows; ++r)
                              for (std::int64_t c = 0; c < values.cols; ++c) {
                                all(at.rows.begin + r, at.cols.begin + c) = values(r, c);
                                ++times(at.rows.begin + r, at.cols.begin + c);
                              }
                          });
  for (const std::int32_t t : times.elements()) EXPECT_EQ(t, 1);
  return all;
}

struct PanelCase {
  std::int64_t rows, cols;
  std::vector<std::int64_t> widths;
  PanelSize size;
};

std::vector<PanelCase> all_cases() {
  return {{70, 90, {33}, {16, 16}},   {70, 90, {33}, {70, 90}},      {70, 90, {33}, {128, 256}},
          {1, 1, {1}, {16, 16}},      {40, 50, {8, 20, 1}, {12, 7}}, {40, 50, {300, 5}, {16, 32}},
          {17, 33, {0, 4}, {16, 16}}, {17, 33, {0}, {16, 16}}};
}

TEST(GradientPanels, CoverTheDenseGradientOnceInAnySize) {
  for (const PanelCase& c : all_cases())
    for (const bool batch_first : {false, true}) {
      SCOPED_TRACE(testing::Message()
                   << c.rows << " x " << c.cols << " in panels of " << c.size.rows << " x "
                   << c.size.cols << (batch_first ? ", batch first" : ""));
      const Batches batches(c.rows, c.cols, c.widths, batch_first);
      const Matrix<float> all = gradient_of(batches, c.rows, c.cols, c.size, 2);
      for (std::int64_t r = 0; r < c.rows; ++r)
        for (std::int64_t col = 0; col < c.cols; ++col)
          ASSERT_NEAR(all(r, col), batches.exact(r, col), 1e-4) << r << ", " << col;
    }
}

// A build with a library has our kernel too. Panels of the same columns follow one another.
TEST(GradientPanels, CoverTheDenseGradientByEitherKernel) {
  for (const PanelCase& c : all_cases())
    for (const bool batch_first : {false, true})
      for (const bool own_kernel : {false, true}) {
        SCOPED_TRACE(testing::Message() << c.rows << " x " << c.cols << " in panels of "
                                        << c.size.rows << " x " << c.size.cols << " own kernel "
                                        << own_kernel << " batch first " << batch_first);
        const Batches batches(c.rows, c.cols, c.widths, batch_first);
        GradientPanel panel(c.size, batches.views, own_kernel);
        for (std::int64_t col = 0; col < c.cols; col += c.size.cols)
          for (std::int64_t row = 0; row < c.rows; row += c.size.rows) {
            const Range rows{row, std::min(row + c.size.rows, c.rows)},
                cols{col, std::min(col + c.size.cols, c.cols)};
            const MatrixView<const float> values = panel.compute(rows, cols);
            for (std::int64_t r = 0; r < rows.size(); ++r)
              for (std::int64_t k = 0; k < cols.size(); ++k)
                ASSERT_NEAR(values(r, k), batches.exact(row + r, col + k), 1e-4) << r << ", " << k;
          }
      }
}

TEST(GradientPanels, HaveTheSameBitsForAnyNumberOfThreads) {
  const Batches batches(300, 200, {40, 24});
  const Matrix<float> alone = gradient_of(batches, 300, 200, {32, 48}, 1);
  for (const int threads : {2, 3, 7})
    EXPECT_EQ(gradient_of(batches, 300, 200, {32, 48}, threads), alone) << threads;
}

TEST(GradientPanels, AreWholeBlocksThatStayInASecondLevelCache) {
  for (const BlockShape block : {BlockShape{1, 1}, {16, 16}, {3, 5}, {100, 7}}) {
    const PanelSize size = gradient_panel_size(block);
    EXPECT_EQ(size.rows % block.rows, 0);
    EXPECT_EQ(size.cols % block.cols, 0);
    EXPECT_LE((size.rows - block.rows) * (size.cols - block.cols) * 4, 1 << 20);
  }
}

TEST(GradientPanels, RefuseOperandsThatDoNotBelongTogether) {
  const Batches good(10, 12, {5, 6}), other(11, 12, {5});
  const auto executor = make_executor(1);
  const auto code = [&](const std::vector<GradientOperands>& views) {
    try {
      for_each_gradient_panel({16, 16}, views, *executor, [](const auto&, const auto&) {});
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("dense gradient"), std::string::npos) << e.what();
      return e.code();
    }
    return ErrorCode::CheckFailed;
  };
  EXPECT_EQ(code({good.views[0], other.views[0]}), ErrorCode::InvalidArgument);
  EXPECT_EQ(code({{good.views[0].q_grad, good.views[1].s}}), ErrorCode::InvalidArgument);
  EXPECT_EQ(code({}), ErrorCode::CheckFailed) << "no batches have no panels";
  EXPECT_THROW(for_each_gradient_panel({}, good.views, *executor, [](const auto&, const auto&) {}),
               Error);
}

}  // namespace
}  // namespace tessera::host
