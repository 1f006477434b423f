#include <pybind11/pybind11.h>

#include "tessera/base/version.hpp"
#include "tessera/python/src/errors.hpp"
#include "tessera/python/src/files.hpp"
#include "tessera/python/src/interrupt.hpp"
#include "tessera/python/src/layer.hpp"
#include "tessera/python/src/machine.hpp"
#include "tessera/python/src/plan.hpp"
#include "tessera/python/src/products.hpp"
#include "tessera/python/src/rewire.hpp"
#include "tessera/python/src/simulate.hpp"
#include "tessera/python/src/study.hpp"
#include "tessera/python/src/trainer.hpp"

namespace py = pybind11;

namespace tessera::python {
namespace {

void add_all(py::module_& module) {
  add_errors(module);
  add_layer(module);
  add_rewire(module);
  add_files(module);
  add_interrupt(module);
  add_machine(module);
  add_plan(module);
  add_products(module);
  add_simulate(module);
  add_study(module);
  add_trainer(module);
  module.attr("__version__") = TESSERA_VERSION;
}

}  // namespace
}  // namespace tessera::python

// This is PYBIND11_MODULE written out, because subinterpreters have to be refused before pybind11
// is set up, which waits for ever in one. Exceptions and classes are kept for the process, and
// interpreters would share them.
extern "C" __attribute__((visibility("default"))) PyObject* PyInit__core() {
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(PyExc_ImportError,
                    "tessera runs in the main interpreter only, not in a subinterpreter");
    return nullptr;
  }
  static PyModuleDef definition;
  try {
    PYBIND11_ENSURE_INTERNALS_READY
    auto module = py::module_::create_extension_module("_core", nullptr, &definition);
    tessera::python::add_all(module);
    return module.release().ptr();
  }
  PYBIND11_CATCH_INIT_EXCEPTIONS
}
