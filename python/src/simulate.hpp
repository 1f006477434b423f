#pragma once

#include <pybind11/pybind11.h>

namespace tessera::python {

// Adds the class Run, a run of a layer on a modelled machine, and the function that makes one.
void add_simulate(pybind11::module_& module);

}  // namespace tessera::python
