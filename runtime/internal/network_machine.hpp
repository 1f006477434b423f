#pragma once

#include "tessera/base/executor.hpp"
#include "tessera/runtime/internal/tile_program.hpp"

namespace tessera::runtime::internal {

// The parts of a network's program that are the same for all layers.
struct NetworkMachine {
  TileProgram& program;
  Executor& executor;

  device::Engine& engine() const { return program.engine(); }
};

}  // namespace tessera::runtime::internal
