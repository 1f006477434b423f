#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/problem.hpp"
#include "tessera/report/dense_verdict.hpp"
#include "tessera/study/cost_model.hpp"
#include "tessera/study/tables.hpp"
#include "tessera/study/target.hpp"

namespace tessera::study {

// The forms of one layer on one machine.
struct LayerAdvice {
  std::string name;
  std::int64_t outputs = 0, inputs = 0, non_zeros = 0;
  std::vector<Cost> blocks;          // in the order of kBlockSides; empty if `fault` is not
  Cost dense;                        // of all of R
  std::optional<double> pays_up_to;  // density of a random pattern in the cheapest blocks
  double error = 0;                  // share by which costs may differ and be about equal
  std::string verdict;               // in words, with what would win; empty: it was not asked for
  std::string fault;                 // the reason why the layer cannot be read; empty: it can

  report::Better better() const;

  // Returns the form to store R in, or nullptr if nothing fits. Where costs are about equal, it is
  // dense.
  const Cost* best() const;
};

// Returns the advice on a layer whose pattern has these elements, with values 1. `in_words`: with a
// verdict that names what would win, which takes some times as long.
LayerAdvice advise(CostModel& model, const sparse::Csr<double>& ones, bool in_words = false);

// The advice for all layers of a file on one machine.
struct MachineAdvice {
  std::string machine;
  Origin origin = Origin::Planned;
  std::string note;
  std::vector<LayerAdvice> layers;
};

// The advice for a file of weights.
struct Advice {
  std::string file;
  Problem asked;                      // passes, types and batch of every layer
  std::vector<std::string> left_out;  // tensors that are not matrices of floating-point numbers
  std::vector<MachineAdvice> machines;
  std::string pattern;       // how the non-zeros of a single layer are spread; else empty
  bool is_complete = false;  // every layer has been advised on for every machine

  // Returns true if at least one layer has a cost on at least one machine.
  bool has_plan() const;
};

// Returns the advice for every matrix of floating-point numbers in a .safetensors file, or for the
// one matrix of any other file, on each of the targets. `tensor` names the only tensor to look at;
// empty: all. A single matrix is shown in all forms. A layer that cannot be read or planned keeps
// the reason. `begins` is called with a layer and a machine before each of them, and ends the
// advice if it returns false; `after_each` is called with the advice so far. Throws Error{BadInput}
// for a file that cannot be read or has no such tensor.
Advice advise(const std::string& file, const std::string& tensor, const Problem& asked,
              const std::vector<Target>& targets,
              const std::function<bool(const std::string&, const std::string&)>& begins,
              const std::function<void(const Advice&)>& after_each);

// Returns one table per machine and a verdict, in lines of at most 100 columns but for long names.
// A single layer is shown in all forms.
std::string to_text(const Advice& advice);

// Returns the same as JSON, with all forms of every layer.
std::string to_json(const Advice& advice);

// Returns the figures of the best forms as tables and charts for a page.
Report to_report(const Advice& advice);

}  // namespace tessera::study
