#include "tessera/base/pass_steps.hpp"

namespace tessera {

void append_step(StepOrder& order, Phase phase, StepKind kind) {
  const std::pair step(phase, kind);
  if (order.empty() || order.back() != step) order.push_back(step);
}

StepOrder step_order(const PassForm& form) {
  StepOrder order;
  for_each_step(form, [&](const PassStep& step) { append_step(order, step.phase, step.kind); });
  return order;
}

}  // namespace tessera
