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

enum class PhaseChoice { All, Fwd, Bwd, Wu };

// What to do about a layer without a plan.
enum class OnNoFit {
  Fail,       // say what is in the way and what would help
  BestEffort  // plan a request that is relaxed as little as it takes
};

// The choice that runs these passes beside the forward one.
constexpr PhaseChoice phase_of(bool grad_a, bool grad_w) {
  if (grad_a) return grad_w ? PhaseChoice::All : PhaseChoice::Bwd;
  return grad_w ? PhaseChoice::Wu : PhaseChoice::Fwd;
}

// What every program that plans a layer is told of it, checked as far as it can be without reading
// a file.
struct LayerArguments {
  std::string matrix;  // path; empty: a random pattern of the sizes below
  std::int64_t input_size = 0, output_size = 0;
  double density = 0;
  std::int64_t batch_size = 1;
  BlockShape block;
  PhaseChoice phase = PhaseChoice::All;
  DataType data_type = DataType::Half;
  DataType partials_type = DataType::Float;
  std::string machine = "gc200";      // a preset, a JSON file or "host"
  std::optional<std::int64_t> tiles;  // instead of the machine's own number
  std::string matmul_options;         // JSON text, PopSparse's keys; "@path": of that file
  std::string plan_constraints;       // likewise
  std::string plan_file;              // a plan to take instead of making one
  std::string plan_cache;             // folder of plans; empty: none
  OnNoFit on_no_fit = OnNoFit::Fail;
  host::DenseChoice dense = host::DenseChoice::Never;  // on this computer

  bool grad_a() const { return phase == PhaseChoice::All || phase == PhaseChoice::Bwd; }
  bool grad_w() const { return phase == PhaseChoice::All || phase == PhaseChoice::Wu; }
};

// One group of a layer with the arguments' sizes, block and density. Commands that take these from
// a file or vary them assign to the members of the result.
Problem problem_of(const LayerArguments& arguments);

// Is the machine this computer, which host::HostLayer serves?
bool is_host(const LayerArguments& arguments);

// The machine with that many of its tiles. Error{InvalidArgument} for more than it has, under 1, or
// a name that is not known; Error{BadInput} for a bad file.
device::Machine make_machine(const LayerArguments& arguments);
device::Machine with_tiles(device::Machine machine, std::int64_t tiles, const std::string& name);

// The arguments with PopSparse's layer keys moved from the options to where they belong; they go
// before --single-phase and --partials-type.
LayerArguments with_layer_keys(LayerArguments arguments);

// The options and constraints of the command line, laid over `base`.
planner::Options make_options(const LayerArguments& arguments, const planner::Options& base);

}  // namespace tessera::tools
