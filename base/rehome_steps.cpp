#include "tessera/base/rehome_steps.hpp"

namespace tessera {

StepOrder rehome_step_order(bool passes) {
  StepOrder order;
  for_each_rehome_step(passes,
                       [&](const PassStep& step) { append_step(order, step.phase, step.kind); });
  return order;
}

}  // namespace tessera
