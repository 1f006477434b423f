#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tessera/base/executor.hpp"
#include "tessera/device/host_link.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/train/made_layer.hpp"

namespace tessera::train {

// A machine on which a network trains, with its link to the host and the plans of its layers.
// Copies share the plans. One thread at a time uses it.
class ModelledMachine {
 public:
  // Loads the machine of a preset's name or of a file. Throws the errors of device::load_machine.
  explicit ModelledMachine(const std::string& name_or_path);

  const device::Machine& machine() const;
  const device::HostLink& link() const;

  // Returns a function that makes the layers of a network. A problem is planned when it is met for
  // the first time. The executor must outlive the layers.
  MakeLayer layers(Executor& executor) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tessera::train
