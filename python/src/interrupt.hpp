#pragma once

#include <pybind11/pybind11.h>

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

namespace tessera::python {

// Runs `work` on a thread of its own and waits for it without the interpreter lock. Python's signal
// handlers run meanwhile, at least every twentieth of a second. If one raises, as that of Ctrl-C
// does, the stop token is set and the exception reaches the caller at once; the thread ends by
// itself, and the process waits for it at its end. So `work` may use only what it owns, and takes
// no interpreter lock. Exceptions of `work` reach the caller. Needs the interpreter lock.
void run_interruptibly(std::function<void(std::stop_token)> work);

// Returns what `work` returns, with the contract of run_interruptibly.
template <class Result>
Result interruptibly(std::function<Result(std::stop_token)> work) {
  const auto result = std::make_shared<std::optional<Result>>();
  run_interruptibly([result, work](std::stop_token stop) { *result = work(stop); });
  return **result;
}

// Adds the wait at the end of the process.
void add_interrupt(pybind11::module_& module);

}  // namespace tessera::python
