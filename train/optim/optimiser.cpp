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
void check_rule(const Nesterov& rule, double) {
  require_not_negative("learning_rate", rule.learning_rate);
  require_share("momentum", rule.momentum);
}
void check_rule(const TorchSgd& rule, double) {
  require_not_negative("learning_rate", rule.learning_rate);
  require_share("momentum", rule.momentum);
}
template <class AnyAdam>
void check_adam(const AnyAdam& rule) {
  require_not_negative("learning_rate", rule.learning_rate);
  require_share("beta1", rule.beta1);
  require_share("beta2", rule.beta2);
  require("epsilon", rule.epsilon, kSmallest, kLargest, "above 0 and finite");
}
void check_rule(const Adam& rule, double) { check_adam(rule); }
void check_rule(const AdamW& rule, double weight_decay) {
  check_adam(rule);
  require_not_negative("decay", rule.decay);
  require("weight_decay", weight_decay, 0, 0, "0 for adamw, which has a decay of its own");
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
  struct States {
    std::int64_t operator()(const Sgd& rule) const { return rule.momentum == 0 ? 0 : 1; }
    std::int64_t operator()(const Adam&) const { return 2; }
    std::int64_t operator()(const AdaGrad&) const { return 1; }
    std::int64_t operator()(const Nesterov&) const { return 1; }
    std::int64_t operator()(const TorchSgd&) const { return 1; }
    std::int64_t operator()(const AdamW&) const { return 2; }
  };
  return std::visit(States{}, optimiser.rule);
}

std::string name_of(const Optimiser& optimiser) {
  static constexpr std::string_view kNames[] = {"sgd",      "adam",      "adagrad",
                                                "nesterov", "torch-sgd", "adamw"};
  return std::string(kNames[optimiser.rule.index()]);
}

Optimiser with_learning_rate(Optimiser optimiser, double learning_rate) {
  std::visit([&](auto& rule) { rule.learning_rate = learning_rate; }, optimiser.rule);
  return optimiser;
}

}  // namespace tessera::train
