#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/base/units.hpp"
#include "tessera/device/host_link.hpp"
#include "tessera/runtime/network.hpp"
#include "tessera/train/modelled_machine.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::train {

// A rewire that costs less than this share of the time is rare enough.
inline constexpr double kShareOfRewires = 0.05;

// The cost of a rewire of all layers on a modelled machine, as the mean of the rewires of a run, or
// of new patterns alone, which count as no rewire.
// The host reads the values of all layers, chooses the blocks, encodes the new patterns, and sends
// the buckets that differ, with the optimiser's state of their values. By RigL, the machine
// searches the largest gradients and the host reads the best of each tile.
struct PatternUpdate {
  std::int64_t rewires = 0;
  Bytes upload, download;       // counted
  double upload_seconds = 0;    // modelled, by the machine's link to its host
  double download_seconds = 0;  // modelled
  double host_seconds = 0;      // measured, on this computer
  // Modelled, of a search for the largest gradients on the machine: the dense gradient, and keeping
  // the best places. 0 if the host finds the places.
  Cycles gradient, selection;
  double searches = 0;  // runs of the program, of all layers together
  double machine_seconds = 0;

  double seconds() const {
    return upload_seconds + download_seconds + host_seconds + machine_seconds;
  }
};

// Returns the mean cost of the rewires of this run that added or removed blocks; nothing if there
// was none, or if the run went on from a checkpoint and has made none since.
std::optional<PatternUpdate> pattern_update(const Trainer& trainer, const ModelledMachine& on);

// Returns the least number of steps from one rewire to the next with which rewires take less than
// `share` of the time. Both times are above 0, the share is in (0, 1).
std::int64_t steps_for_share(double rewire_seconds, double step_seconds, double share);

// Returns the least number of steps from one rewire to the next with which steps and rewires
// together take less time than dense steps; nothing if a step alone takes as much.
std::optional<std::int64_t> steps_to_beat(double rewire_seconds, double step_seconds,
                                          double dense_seconds);

// Returns lines for people, and an object of JSON. There are no dense seconds if no plan fits.
std::string to_text(const PatternUpdate& update, double step_seconds,
                    std::optional<double> dense_seconds, const device::HostLink& link,
                    const std::string& machine);
std::string to_json(const PatternUpdate& update, double step_seconds,
                    std::optional<double> dense_seconds);

// Returns the cost of new patterns for all layers of a network that runs as one program. The host
// reads values and states of the optimiser, encodes the new patterns, and sends words, values,
// states and tables. `host_seconds` is the measured time in which it encoded the weights.
PatternUpdate new_patterns(const runtime::Network& network, const device::HostLink& link,
                           double host_seconds);

// Returns such a cost as lines for people, and as an object of JSON.
std::string new_patterns_text(const PatternUpdate& update, double step_seconds,
                              const device::HostLink& link, const std::string& machine);
std::string new_patterns_json(const PatternUpdate& update, double step_seconds);

}  // namespace tessera::train
