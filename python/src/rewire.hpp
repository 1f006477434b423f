#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "tessera/train/rewire/method.hpp"

namespace tessera::python {

// Returns the method of a name: static, set, rigl or sampled. `pool` is sum, max or mean, `exclude`
// is kept or original, and `factor` is that of sampled. Throws InvalidArgument, which lists the
// names, for any other text.
train::Method method_of(const std::string& name, const std::string& pool,
                        const std::string& exclude, double factor);

// Adds the schedule of rewires and random patterns to the module.
void add_rewire(pybind11::module_& module);

}  // namespace tessera::python
