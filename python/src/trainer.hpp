#pragma once

#include <pybind11/pybind11.h>

namespace tessera::python {

// Adds the class Trainer, a run of train::Trainer on this computer, to the module.
void add_trainer(pybind11::module_& module);

}  // namespace tessera::python
