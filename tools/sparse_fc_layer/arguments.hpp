#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/base/data_type.hpp"

namespace tessera::tools {

enum class PhaseChoice { All, Fwd, Bwd, Wu };

// The command line of sparse_fc_layer, checked as far as it can be without reading a file.
struct Arguments {
  std::string matrix;  // path; empty: a random pattern of the sizes below
  std::int64_t input_size = 0, output_size = 0;
  double density = 0;
  std::int64_t batch_size = 1;
  std::int64_t block_size = 1;
  PhaseChoice phase = PhaseChoice::All;
  std::string machine = "gc200";      // a preset or a JSON file
  std::optional<std::int64_t> tiles;  // instead of the machine's own number
  DataType data_type = DataType::Half;
  std::uint64_t seed = 1;
  std::string matmul_options;    // JSON text, PopSparse's keys
  std::string plan_constraints;  // JSON text
  bool isolate = false;          // copy between tiles instead of sharing memory
  int threads = 0;               // of this computer; 0: all

  bool grad_a() const { return phase == PhaseChoice::All || phase == PhaseChoice::Bwd; }
  bool grad_w() const { return phase == PhaseChoice::All || phase == PhaseChoice::Wu; }
};

// What the command line asks for: a run, or an exit with this code (help or a usage error, already
// printed). Error{Internal} when help could not be written.
struct Parsed {
  Arguments arguments;
  std::optional<int> exit;
};
Parsed parse_arguments(int argc, const char* const* argv);

}  // namespace tessera::tools
