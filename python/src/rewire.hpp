#pragma once

#include <pybind11/pybind11.h>

#include <optional>
#include <string>
#include <vector>

#include "tessera/train/rewire/method.hpp"

namespace tessera::python {

// Returns the optimiser of a rule with its numbers: "adam" (learning rate, two betas, epsilon,
// decay of gradients), "adamw" (the same, with AdamW's decay) or "sgd" (learning rate, momentum,
// decay), as torch has them; nothing for "".
std::optional<train::Optimiser> optimiser_of(const std::string& rule,
                                             const std::vector<double>& numbers);

// Adds the schedule of rewires and random patterns to the module.
void add_rewire(pybind11::module_& module);

}  // namespace tessera::python
