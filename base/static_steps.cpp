#include "tessera/base/static_steps.hpp"

namespace tessera {

StepOrder static_step_order(const StaticSteps& steps) {
  StepOrder order;
  for_each_static_step(steps,
                       [&](const PassStep& step) { append_step(order, step.phase, step.kind); });
  return order;
}

}  // namespace tessera
