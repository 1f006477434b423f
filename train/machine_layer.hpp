#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/units.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/train/rewire/grow.hpp"

namespace tessera::train {

// The bytes that changes of a layer's pattern move between this computer and the machine, summed
// over all changes. An optimiser's state takes as many bytes for each number of a value.
struct UpdateTraffic {
  std::int64_t updates = 0;
  Bytes words;   // to the machine: words of the buckets that differ, and tables
  Bytes values;  // to the machine: values of these buckets; their state is read before
  Bytes read;    // from the machine: values of all buckets, from which the smallest are chosen

  friend bool operator==(const UpdateTraffic&, const UpdateTraffic&) = default;
};

// The searches of a layer for its largest gradients on the machine (runtime::DenseGradW), summed.
struct SearchFigures {
  std::int64_t searches = 0, runs = 0;  // runs of the program
  Cycles gradient, selection;           // modelled: the dense gradient, and keeping the best places
  Bytes upload, download;               // counted
  double seconds = 0;                   // measured, that this computer took to model them
};

// Counts the bytes that rewires of a layer move to and from its modelled machine, and searches its
// largest gradients there. One thread at a time uses an object.
class MachineLayer {
 public:
  // Takes the layer of a network, of one group, whose plan keeps R in buckets, and its machine. The
  // executor runs the searches and must outlive the object.
  MachineLayer(std::shared_ptr<const runtime::FullyConnected> layer, const device::Machine& machine,
               Executor& executor)
      : layer_(std::move(layer)), machine_(machine), executor_(&executor) {}

  // Keeps the words of the layer's buckets, with which count_update() compares those after a change
  // of the pattern. O(words).
  void keep_words() { words_ = layer_->buckets().meta; }

  // Counts what a change has moved that the layer has just made: buckets with the same words keep
  // their values. Throws nothing.
  void count_update();

  // Returns what changes of the pattern have moved since the layer was made.
  const UpdateTraffic& update_traffic() const { return traffic_; }

  // Returns what the function of the same name in rewire/grow.hpp does, for one batch, by a search
  // on the machine. Throws Error{NoSolution}, which says why, if no plan of the search fits, and
  // the errors of runtime::DenseGradW.
  std::vector<sparse::BlockAt> largest_gradients(const sparse::Csr<float>& taken, std::int64_t k,
                                                 BlockScore pool, const GradientBatch& batch,
                                                 std::string_view name = "weights");
  const SearchFigures& search_figures() const { return search_; }

  // Returns the bytes that the machine is sent for a new pattern.
  Bytes pattern_bytes() const { return layer_->pattern_bytes(); }

  // Returns the values that a tile keeps, with padding: as many as an optimiser changes there.
  std::int64_t values_per_tile() const { return layer_->buckets().values_per_bucket(); }

 private:
  std::shared_ptr<const runtime::FullyConnected> layer_;
  device::Machine machine_;
  Executor* executor_;
  UpdateTraffic traffic_;
  SearchFigures search_;
  decltype(partitioner::Buckets::meta) words_;
};

}  // namespace tessera::train
