#include <pybind11/pybind11.h>

#include "tessera/base/executor.hpp"
#include "tessera/base/version.hpp"
#include "tessera/python/src/csr.hpp"
#include "tessera/python/src/errors.hpp"
#include "tessera/python/src/files.hpp"
#include "tessera/python/src/host_plan.hpp"
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
  add_csr(module);
  add_layer(module);
  add_rewire(module);
  add_files(module);
  add_interrupt(module);
  add_machine(module);
  add_plan(module);
  add_host_plan(module);
  add_products(module);
  add_simulate(module);
  add_study(module);
  add_trainer(module);
  module.attr("__version__") = TESSERA_VERSION;
  module.attr("MOST_THREADS") = kMostThreads;
}

// Fills the module when an interpreter imports it; returns -1 with Python's error set if it cannot.
// Exceptions and classes are kept for the process, and subinterpreters would share them, so these
// are refused before pybind11 is set up, which waits for ever in one.
//
// An interpreter that imports the module again, after somebody took it out of sys.modules, gets
// what the first import made.
int fill(PyObject* module) {
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(PyExc_ImportError,
                    "tessera runs in the main interpreter only, not in a subinterpreter");
    return -1;
  }
  try {
    PYBIND11_ENSURE_INTERNALS_READY
    static PyObject* made = nullptr;  // the names of the first import; kept for the process
    if (made != nullptr) return PyDict_Update(PyModule_GetDict(module), made);
    auto filled = py::reinterpret_borrow<py::module_>(module);
    add_all(filled);
    made = PyDict_Copy(PyModule_GetDict(module));
    return made != nullptr ? 0 : -1;
  } catch (py::error_already_set& error) {
    py::raise_from(error, PyExc_ImportError, "initialization failed");
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_ImportError, error.what());
  }
  return -1;
}

}  // namespace
}  // namespace tessera::python

// This is PYBIND11_MODULE written out in two phases. In one phase, Python 3.13 would run it for a
// subinterpreter in the main interpreter and then free what it made with the wrong allocator.
extern "C" __attribute__((visibility("default"))) PyObject* PyInit__core() {
  static PyModuleDef_Slot slots[] = {
      {Py_mod_exec, reinterpret_cast<void*>(&tessera::python::fill)},
#ifdef Py_mod_multiple_interpreters
      {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
      {0, nullptr}};
  static PyModuleDef definition = {
      PyModuleDef_HEAD_INIT, "_core", nullptr, 0, nullptr, slots, nullptr, nullptr, nullptr};
  return PyModuleDef_Init(&definition);
}
