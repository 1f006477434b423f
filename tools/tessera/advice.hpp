#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/problem.hpp"
#include "tessera/base/units.hpp"
#include "tessera/tools/internal/study.hpp"
#include "tessera/tools/layer_arguments.hpp"

namespace tessera::tools {

namespace internal {
class Progress;
}

// One form in which R can be stored, and the cost of all passes with it.
struct StoredForm {
  std::string name;            // "4x4" or "dense"
  std::string method;          // of the forward pass; empty on this computer
  std::string kernel;          // of the dense form: its sums, or the product of this computer
  double density = 1;          // share of the blocks that are stored
  std::optional<double> cost;  // modelled cycles or, on this computer, seconds of a forecast
  Bytes tile_memory;           // of the fullest tile; 0 on this computer
  std::string note;            // the relaxation of the request, or the reason for having no cost
};

// The forms of one layer on one machine.
struct LayerAdvice {
  std::string name;
  std::int64_t outputs = 0, inputs = 0, non_zeros = 0;
  std::vector<StoredForm> blocks;    // in the order of kBlockSides; empty if `fault` is not
  StoredForm dense;                  // all of R
  std::optional<double> pays_up_to;  // density of a random pattern in the cheapest blocks
  std::string fault;                 // the reason why the layer cannot be read; empty: it can

  // Returns the blocks with the least cost, or nullptr if nothing fits.
  const StoredForm* best_blocks() const;

  // Returns whether the best blocks cost less than the dense layer, or have no competitor.
  bool sparse_pays() const;

  // Returns the cheapest of all forms, or nullptr if nothing fits.
  const StoredForm* best() const;
};

// The advice for all layers of a file on one machine.
struct MachineAdvice {
  std::string machine;
  bool is_host = false;  // costs are seconds of a forecast
  std::string note;      // about the rates behind the forecast; empty: none
  std::vector<LayerAdvice> layers;
};

// The advice for a file of weights.
struct Advice {
  std::string file;
  Problem asked;                      // passes, types and batch of every layer
  std::vector<std::string> left_out;  // tensors that are not matrices of floating-point numbers
  std::vector<MachineAdvice> machines;
  bool is_complete = false;  // true: every layer has been planned for every machine

  // Returns true if at least one layer has a plan on at least one machine.
  bool has_plan() const;
};

// Plans every matrix of floating-point numbers in a .safetensors file, or the one matrix of any
// other file, on each of the machines, in blocks of all sides and dense. A layer that cannot be
// read or planned keeps the reason and the others are planned. Stops after Ctrl-C. Throws
// Error{BadInput} for a file that cannot be read, and the errors of make_machine() and
// make_options(). Calls `after_each` with the advice so far when a layer has been planned for a
// machine.
Advice advise(const LayerArguments& arguments, const std::string& file,
              const std::vector<std::string>& machines, internal::Progress& progress,
              const std::function<void(const Advice&)>& after_each);

// Returns one table per machine and a verdict, in lines of at most 100 columns but for long names.
std::string to_text(const Advice& advice);

// Returns the same as JSON, with all forms of every layer.
std::string to_json(const Advice& advice);

// Returns the figures of the best forms as tables and charts for a page.
internal::Study to_study(const Advice& advice);

}  // namespace tessera::tools
