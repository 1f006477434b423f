#include "tessera/train/optim/optimiser.hpp"

#include <fmt/format.h>

#include <limits>
#include <string_view>

#include "tessera/base/error.hpp"

namespace tessera::train {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();
constexpr double kSmallest = std::numeric_limits<double>::denorm_min();

void require(std::string_view field, double value, double least, double most,
             std::string_view range) {
  if (value >= least && value <= most) return;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("optimiser: {} is {}; it must be {}", field, value, range));
}

void require_not_negative(std::string_view field, double value) {
  require(field, value, 0, kLargest, "at least 0 and finite");
}

void require_share(std::string_view field, double value) {
  require(field, value, 0, 1 - std::numeric_limits<double>::epsilon() / 2, "in [0, 1)");
}

void check_rule(const Sgd& rule, double) {
  require_not_negative("learning_rate", rule.learning_rate);
  require_share("momentum", rule.momentum);
}
void check_rule(const Adam& rule, double) {
  require_not_negative("learning_rate", rule.learning_rate);
  require_share("beta1", rule.beta1);
  require_share("beta2", rule.beta2);
  require("epsilon", rule.epsilon, kSmallest, kLargest, "above 0 and finite");
}
void check_rule(const AdaGrad& rule, double weight_decay) {
  require_not_negative("learning_rate", rule.learning_rate);
  require("epsilon", rule.epsilon, kSmallest, kLargest, "above 0 and finite");
  require("weight_decay", weight_decay, 0, 0, "0 for adagrad");
}

}  // namespace

void check(const Optimiser& optimiser) {
  require("rescale", optimiser.rescale, -kLargest, kLargest, "finite");
  if (optimiser.clip) require_not_negative("clip", *optimiser.clip);
  require_not_negative("weight_decay", optimiser.weight_decay);
  std::visit([&](const auto& rule) { check_rule(rule, optimiser.weight_decay); }, optimiser.rule);
}

std::int64_t states_of(const Optimiser& optimiser) {
  if (std::holds_alternative<Adam>(optimiser.rule)) return 2;
  const auto* sgd = std::get_if<Sgd>(&optimiser.rule);
  return sgd != nullptr && sgd->momentum == 0 ? 0 : 1;
}

std::string name_of(const Optimiser& optimiser) {
  static constexpr std::string_view kNames[] = {"sgd", "adam", "adagrad"};
  return std::string(kNames[optimiser.rule.index()]);
}

}  // namespace tessera::train
