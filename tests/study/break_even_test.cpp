#include "tessera/study/break_even.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <optional>

#include "tessera/base/random.hpp"

namespace tessera::study {
namespace {

using Curve = std::function<std::optional<double>(double)>;

// A model whose costs are a function of density; it counts looks.
class CurveModel : public CostModel {
 public:
  explicit CurveModel(Curve curve) : CostModel({}), curve_(std::move(curve)) {}

  Origin origin() const override { return Origin::Planned; }
  Cost sparse(const Form& form) override {
    ++looks;
    return {.value = curve_(form.density), .density = form.density};
  }
  Cost dense(std::int64_t) override { return {}; }

  int looks = 0;

 private:
  Curve curve_;
};

double found(const Curve& curve, double dense, const DensityGrid& grid = {}) {
  CurveModel model(curve);
  return break_even(model, {}, dense, grid);
}

TEST(BreakEven, IsTheLastThousandthThatCostsLess) {
  const auto linear = [](double density) { return std::optional(100 * density); };
  EXPECT_DOUBLE_EQ(found(linear, 25), 0.249);
  EXPECT_DOUBLE_EQ(found(linear, 25.01), 0.250);
  EXPECT_DOUBLE_EQ(found(linear, 0), 0);
}

// The full matrix is then the best dense program, which is what sparse has to beat.
TEST(BreakEven, IsNeverADensityOfOne) {
  const auto linear = [](double density) { return std::optional(100 * density); };
  EXPECT_DOUBLE_EQ(found(linear, 101), 0.949);
  EXPECT_DOUBLE_EQ(found([](double) { return std::optional(1.0); }, 2), 0);
}

TEST(BreakEven, TakesALayerThatDoesNotFitForADearOne) {
  const auto fits_below_half = [](double density) {
    return density < 0.5 ? std::optional(1.0) : std::nullopt;
  };
  EXPECT_DOUBLE_EQ(found(fits_below_half, 2), 0.499);
}

TEST(BreakEven, LooksAtFewDensitiesOfACurve) {
  const auto curve = [](double density) {
    return std::optional(1000 + 9000 * density + 3000 * density * density);
  };
  for (const double dense : {1100.0, 2000.0, 5000.0, 9000.0}) {
    CurveModel model(curve);
    const double density = break_even(model, {}, dense);
    EXPECT_LE(model.looks, 12);
    EXPECT_LT(curve(density), dense);
    EXPECT_GE(curve(density + 0.001), dense);
    DensityGrid grid;
    for (const double at : {0.001, 0.01, 0.1, 0.4, 0.7, 1.0})
      grid.known.emplace_back(at, curve(at));
    model.looks = 0;
    EXPECT_EQ(break_even(model, {}, dense, grid), density);
    EXPECT_LE(model.looks, 5);
    EXPECT_EQ(break_even(model, {}, dense, {.guess = density}), density);
  }
}

TEST(BreakEven, HalvesACoarseGridWithoutALookAtAFullMatrix) {
  CurveModel model([](double density) { return std::optional(density); });
  std::vector<double> seen;
  DensityGrid grid{.steps = 32, .halves = true};
  grid.seen = [&](double density, const Cost&) { seen.push_back(density); };
  EXPECT_EQ(break_even(model, {}, 2, grid), 31.0 / 32);
  EXPECT_EQ(seen, (std::vector<double>{0.5, 0.75, 0.875, 0.9375, 0.96875}));
}

TEST(BreakEven, IsThatOfALinearScanForRandomCosts) {
  Random random(5);
  for (int trial = 0; trial < 300; ++trial) {
    const double start = random.unit(), power = 0.3 + 2 * random.unit(), fits = random.unit();
    const auto cost = [&](double density) {
      return density > fits ? std::nullopt : std::optional(start + std::pow(density, power));
    };
    const double dense = 1.5 * random.unit();
    double expected = 0;
    for (int step = 1; step <= 1000; ++step)
      if (cost(step / 1000.0).value_or(9) < dense) expected = step / 1000.0;
    EXPECT_EQ(found(cost, dense), expected) << trial;
    EXPECT_EQ(found(cost, dense, {.guess = random.unit()}), expected);
  }
}

}  // namespace
}  // namespace tessera::study
