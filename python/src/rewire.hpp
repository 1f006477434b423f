#pragma once

#include <pybind11/pybind11.h>

#include <optional>
#include <string>
#include <vector>

#include "tessera/train/rewire/method.hpp"

namespace tessera::python {

// Returns the method of a name: static, set, rigl, sampled, prune or top-k. `pool` is sum, max or
// mean, `exclude` is kept or original, `factor` is that of sampled and top-k, and `search` that of
// top-k: exact, shortlist or sampled. Throws InvalidArgument, which lists the names, for any other
// text.
train::Method method_of(const std::string& name, const std::string& pool,
                        const std::string& exclude, double factor,
                        const std::string& search = "exact");

// Returns the optimiser of a rule with its numbers: "adam" (learning rate, two betas, epsilon,
// decay of gradients), "adamw" (the same, with AdamW's decay) or "sgd" (learning rate, momentum,
// decay), as torch has them; nothing for "".
std::optional<train::Optimiser> optimiser_of(const std::string& rule,
                                             const std::vector<double>& numbers);

// Adds the schedule of rewires and random patterns to the module.
void add_rewire(pybind11::module_& module);

}  // namespace tessera::python
