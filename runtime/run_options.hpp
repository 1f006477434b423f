#pragma once

#include <functional>
#include <optional>
#include <stop_token>

#include "tessera/device/engine.hpp"
#include "tessera/device/ledger.hpp"
#include "tessera/verify/run_options.hpp"

namespace tessera::runtime {

using verify::Progress;

// Options of one pass on a modelled machine: those of verify::RunOptions, and what only a machine
// made of tiles has. Nothing of this changes a result, but for a fault, which may.
struct RunOptions {
  // As verify::RunOptions has them.
  std::stop_token stop = {};
  std::function<void(const Progress&)> progress = {};
  // Overwritten with what every tile did in every step of the pass; costs memory and time.
  device::TileLedger* tiles = nullptr;
  verify::Checksums* self_check = nullptr;  // as verify::RunOptions has it
  // For trying self_check out: this bit flips in this run. Only in Isolate mode, else
  // Error{InvalidArgument}. Steps are those of the ledger; with a layout of GradA's own the first
  // of them bring the values there. Words of a bucket or of a re-home table that lead a tile astray
  // are Error{CheckFailed}, with or without self_check.
  std::optional<device::Fault> fault = {};
  // Where it is not null: where the fault struck; none where the program has no such step, or the
  // tile not that much memory in use then.
  std::optional<device::Struck>* struck = nullptr;
};

}  // namespace tessera::runtime
