#pragma once

#include "tessera/base/executor.hpp"
#include "tessera/runtime/internal/bound_program.hpp"

namespace tessera::runtime::internal {

// The parts of a network's program that are the same for all layers.
struct NetworkMachine {
  BoundProgram& program;
  device::Engine& engine;
  Executor& executor;
};

}  // namespace tessera::runtime::internal
