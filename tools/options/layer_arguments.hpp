#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/data_type.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/planner/options.hpp"

namespace tessera::tools {

// The passes to run, as --single-phase names them.
enum class PhaseChoice { All, Fwd, Bwd, Wu };

// The reaction to a layer without a plan.
enum class OnNoFit {
  Fail,       // report the limits and the changes that would help
  BestEffort  // plan the request with the smallest relaxation that helps
};

// Returns the choice that runs these passes in addition to the forward pass.
constexpr PhaseChoice phase_of(bool grad_a, bool grad_w) {
  if (grad_a) return grad_w ? PhaseChoice::All : PhaseChoice::Bwd;
  return grad_w ? PhaseChoice::Wu : PhaseChoice::Fwd;
}

// The arguments of every program that plans a layer, checked as far as is possible without reading
// a file.
struct LayerArguments {
  std::string matrix;                            // path; empty: a random pattern of the sizes below
  std::int64_t input_size = 0, output_size = 0;  // of each group
  std::int64_t groups = 1;                       // each has a pattern of its own
  double density = 0;
  std::int64_t batch_size = 1;
  BlockShape block;
  bool chooses_block = false;  // `block` is to be set to the square block of least cost
  PhaseChoice phase = PhaseChoice::All;
  DataType data_type = DataType::Half;
  DataType partials_type = DataType::Float;
  std::string machine = "gc200";      // a preset, a JSON file or "host"
  std::optional<std::int64_t> tiles;  // replaces the machine's own number
  std::string matmul_options;         // JSON text with PopSparse's keys, or "@path" of a file
  std::string plan_constraints;       // the same
  std::string plan_file;              // path of a plan to use; empty: the layer is planned
  std::string plan_cache;             // folder of plans; empty: none
  OnNoFit on_no_fit = OnNoFit::Fail;
  host::DenseChoice dense = host::DenseChoice::Never;  // of the host only

  bool grad_a() const { return phase == PhaseChoice::All || phase == PhaseChoice::Bwd; }
  bool grad_w() const { return phase == PhaseChoice::All || phase == PhaseChoice::Wu; }
};

// Returns the problem with the groups, sizes, block and density of the arguments. Commands
// that read these from a file, or vary them, assign to the members of the result.
Problem problem_of(const LayerArguments& arguments);

// Returns true if the machine is this computer, for which host::HostLayer runs the layer.
bool is_host(const LayerArguments& arguments);

// Returns the machine that the arguments name, with the number of tiles that they ask for. Throws
// Error{InvalidArgument} for an unknown name and for fewer than 1 or more tiles than the machine
// has, and Error{BadInput} for a malformed file.
device::Machine make_machine(const LayerArguments& arguments);

// Returns the machine with only `tiles` of its tiles. `name` names the number in messages. Throws
// Error{InvalidArgument} for fewer than 1 or more tiles than it has.
device::Machine with_tiles(device::Machine machine, std::int64_t tiles, const std::string& name);

// Moves PopSparse's layer keys from the text of the options to the fields of the arguments. They
// override --single-phase and --partials-type.
LayerArguments with_layer_keys(LayerArguments arguments);

// Returns `base` with the options and constraints of the command line applied to it.
planner::Options make_options(const LayerArguments& arguments, const planner::Options& base);

}  // namespace tessera::tools
