#pragma once

#include <pybind11/pybind11.h>

namespace tessera::python {

// Adds the questions of study/ to the module: advise, verdict, sweep and crossover.
void add_study(pybind11::module_& module);

}  // namespace tessera::python
