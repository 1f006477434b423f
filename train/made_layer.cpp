#include "tessera/train/made_layer.hpp"

#include <utility>

#include "tessera/host/cpu.hpp"
#include "tessera/host/layer.hpp"

namespace tessera::train {

MakeLayer host_layers(Executor& executor, bool density_changes) {
  return [&executor, density_changes, cpu = host::read_host_cpu()](const Problem& problem) {
    const auto dense = density_changes        ? host::DenseChoice::Auto
                       : problem.density == 1 ? host::DenseChoice::Always
                                              : host::DenseChoice::Never;
    return MadeLayer{std::make_shared<host::HostLayer>(problem, cpu, executor,
                                                       host::HostOptions{.dense = dense})};
  };
}

MakeLayer shared_layers(BatchShare& share, Executor& executor) {
  return [&](const Problem& problem) { return MadeLayer{share.make_layer(problem, executor)}; };
}

MadeLayer machine_layer(runtime::FullyConnected layer, const device::Machine& machine,
                        Executor& executor) {
  auto shared = std::make_shared<runtime::FullyConnected>(std::move(layer));
  return {shared, std::make_shared<MachineLayer>(shared, machine, executor)};
}

}  // namespace tessera::train
