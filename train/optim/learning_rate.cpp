#include "tessera/train/optim/learning_rate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string_view>

#include "tessera/base/error.hpp"

namespace tessera::train {
namespace {

void require_rate(bool is_legal, std::string_view field, double value, std::string_view range) {
  if (is_legal) return;
  throw_invalid(fmt::format("learning rate: {} is {}; it must be {}", field, value, range));
}

double factor_of(const ConstantRate&, std::int64_t) { return 1; }
double factor_of(const StepRate& rate, std::int64_t step) {
  return std::pow(rate.factor, double((step - 1) / rate.every));
}
double factor_of(const CosineRate& rate, std::int64_t step) {
  const std::int64_t done = std::min(step - 1, rate.steps);
  return (1 + std::cos(std::numbers::pi * double(done) / double(rate.steps))) / 2;
}

void check_decay(const ConstantRate&) {}
void check_decay(const StepRate& rate) {
  require_rate(rate.every >= 1, "every", double(rate.every), "at least 1");
  require_rate(rate.factor > 0 && rate.factor <= 1, "factor", rate.factor, "in (0, 1]");
}
void check_decay(const CosineRate& rate) {
  require_rate(rate.steps >= 1, "steps", double(rate.steps), "at least 1");
}

}  // namespace

double LearningRate::at(std::int64_t step) const {
  const double rate = first * std::visit([&](const auto& d) { return factor_of(d, step); }, decay);
  return step <= warm_up ? rate * double(step) / double(warm_up + 1) : rate;
}

void check(const LearningRate& rate) {
  require_rate(rate.first >= 0 && rate.first <= std::numeric_limits<double>::max(), "first",
               rate.first, "at least 0 and finite");
  require_rate(rate.warm_up >= 0, "warm_up", double(rate.warm_up), "at least 0");
  std::visit([](const auto& decay) { check_decay(decay); }, rate.decay);
}

}  // namespace tessera::train
