#include "tessera/codelets/update.hpp"

#include <fmt/format.h>

#include <cmath>

#include "tessera/base/error.hpp"

namespace tessera::codelets {
namespace {

void require(bool legal, const char* field, double value, const char* range) {
  if (legal) return;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("optimiser: {} is {}; it must be {}", field, value, range));
}

// Calls change(gradient, i) for each value, which returns what is added to it.
template <class T, class Change>
void change_values(std::span<const T> gradients, T* values, Change&& change) {
  for (std::size_t i = 0; i < gradients.size(); ++i)
    values[i] = T(float(values[i]) + change(float(gradients[i]), i));
}

float adam_rate(const UpdateRule& rule, std::int64_t t) {
  const double steps = double(t);
  return float(rule.rate * std::sqrt(1 - std::pow(rule.beta2, steps)) /
               (1 - std::pow(rule.beta1, steps)));
}

}  // namespace

std::string_view to_string(Update update) {
  switch (update) {
    case Update::Sgd:
      return "sgd";
    case Update::Momentum:
      return "momentum";
    case Update::AdaGrad:
      return "adagrad";
    case Update::Adam:
      return "adam";
  }
  assertion_failed("every optimiser has a name", __FILE__, __LINE__);
}

std::int64_t states_of(Update update) {
  return update == Update::Sgd ? 0 : update == Update::Adam ? 2 : 1;
}

void check(const UpdateRule& rule) {
  // Steps are computed in float.
  const auto is_share = [](double v) { return v >= 0 && float(v) < 1; };
  require(rule.rate >= 0 && std::isfinite(float(rule.rate)), "rate", rule.rate,
          "at least 0 and finite");
  require(is_share(rule.momentum), "momentum", rule.momentum, "in [0, 1)");
  require(is_share(rule.beta1), "beta1", rule.beta1, "in [0, 1)");
  require(is_share(rule.beta2), "beta2", rule.beta2, "in [0, 1)");
  require(float(rule.epsilon) > 0 && std::isfinite(float(rule.epsilon)), "epsilon", rule.epsilon,
          "above 0 and finite");
}

template <class T>
void update_values(const UpdateRule& rule, std::int64_t t, std::span<const T> gradients,
                   std::span<float* const> states, T* values) noexcept {
  const float rate = float(rule.rate), epsilon = float(rule.epsilon);
  switch (rule.kind) {
    case Update::Sgd:
      return change_values(gradients, values, [&](float g, std::size_t) { return -rate * g; });
    case Update::Momentum:
      return change_values(gradients, values,
                           [&, m = states[0], keep = float(rule.momentum)](float g, std::size_t i) {
                             return m[i] = keep * m[i] - rate * g;
                           });
    case Update::AdaGrad:
      return change_values(gradients, values, [&, h = states[0]](float g, std::size_t i) {
        h[i] += g * g;
        return -rate * g / (std::sqrt(h[i]) + epsilon);
      });
    case Update::Adam:
      return change_values(
          gradients, values,
          [&, m = states[0], v = states[1], beta1 = float(rule.beta1), beta2 = float(rule.beta2),
           now = adam_rate(rule, t)](float g, std::size_t i) {
            m[i] = beta1 * m[i] + (1 - beta1) * g;
            v[i] = beta2 * v[i] + (1 - beta2) * g * g;
            return -now * m[i] / (std::sqrt(v[i]) + epsilon);
          });
  }
}

#define TESSERA_UPDATE(T)                                                          \
  template void update_values(const UpdateRule&, std::int64_t, std::span<const T>, \
                              std::span<float* const>, T*) noexcept;
TESSERA_UPDATE(float)
TESSERA_UPDATE(Half)
TESSERA_UPDATE(BFloat16)
#undef TESSERA_UPDATE

}  // namespace tessera::codelets
