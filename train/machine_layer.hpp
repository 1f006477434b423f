#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/base/units.hpp"
#include "tessera/device/ledger.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/layer/pass_options.hpp"
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

// A layer of one group on a modelled machine, as a Network trains it: a TrainableLayer (layer.hpp).
// The passes are those of runtime::FullyConnected. Those of a layer in half round the operands of a
// pass and widen its results; gradients of outputs are first scaled by a power of two, so that the
// largest is near 16, and results are scaled back: small gradients would else become 0. The values
// that an optimiser changes stay floats. Rounding and changes of values are plain loops on this
// computer, which the modelled cycles do not contain. One thread at a time uses an object.
class MachineLayer {
 public:
  // Makes the layer of a problem with one group in float or half, whose plan keeps R in buckets.
  // The function is called for the first pattern, and once more for the first change of it: the
  // layer of the old pattern then takes the next one. The executor runs the searches of
  // search_on() and must outlive the object.
  using Make = std::function<runtime::FullyConnected()>;
  MachineLayer(Make make, Executor& executor)
      : make_(std::move(make)), layer_(make_()), executor_(&executor) {}

  // The functions of runtime::FullyConnected with these names.
  std::optional<partitioner::Misfit> set_weights(const sparse::Csr<float>& weights) {
    return layer_.set_weights(weights);
  }
  void set_values(std::span<const float> values) { layer_.set_values(values); }
  const sparse::Csr<float>& weights(std::int64_t group = 0) const { return layer_.weights(group); }
  Bytes pattern_bytes() const { return layer_.pattern_bytes(); }

  // A change of the pattern that is ready for commit(). Another prepare_update() takes its place.
  class PreparedUpdate {
   public:
    std::span<const sparse::PlacedBlock> placed() const { return placed_; }

   private:
    friend class MachineLayer;
    std::vector<sparse::PlacedBlock> placed_;  // none: nothing changes
  };

  // Encodes the changed weights beside those of now, which stay. Throws the errors of
  // update_weights, and Error{NoSolution} if they do not fit the buckets.
  PreparedUpdate prepare_update(const sparse::PatternChange& change);

  // Makes the change and counts what it moves: buckets with the same words keep their values.
  // Throws nothing.
  void commit(PreparedUpdate&& update);

  // Returns what changes of the pattern have moved since the layer was made.
  const UpdateTraffic& update_traffic() const { return traffic_; }

  // Returns the measured seconds in which the layer of a second pattern was made, which a run on a
  // real machine does not spend.
  double making_seconds() const { return making_seconds_; }

  // Lets largest_gradients() search on a machine, for the layer of this problem.
  void search_on(const Problem& problem, const device::Machine& machine) {
    searched_ = {problem, machine};
  }
  bool searches_on_machine() const { return searched_.has_value(); }

  // Returns what the function of the same name in rewire/grow.hpp does, for one batch, by a search
  // on the machine. Throws Error{NoSolution}, which says why, if no plan of the search fits, and
  // the errors of runtime::DenseGradW.
  std::vector<sparse::BlockAt> largest_gradients(const sparse::Csr<float>& taken, std::int64_t k,
                                                 Pool pool, const GradientBatch& batch,
                                                 std::string_view name = "weights");
  const SearchFigures& search_figures() const { return search_; }

  // Returns the values that a tile keeps, with padding: as many as an optimiser changes there.
  std::int64_t values_per_tile() const { return layer_.buckets().values_per_bucket(); }

  // Calls change(part, 0) with a copy of all values, and gives the layer the values that it leaves
  // there. An exception of `change` reaches the caller, and the layer has its old values. Costs
  // set_values and a copy; allocates nothing from the second call on.
  template <class Change>
  void change_values(Change&& change) {
    const std::vector<float>& now = weights().values;
    values_.assign(now.begin(), now.end());
    change(std::span<float>(values_), std::int64_t{0});
    layer_.set_values(values_);
  }

  // The passes. Options are those of runtime::FullyConnected.
  template <class T>
  void forward(MatrixView<const T> s, MatrixView<T> q, const layer::PassOptions& options = {});
  template <class T>
  void grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad,
              const layer::PassOptions& options = {});
  template <class T>
  void grad_w(MatrixView<const T> q_grad, MatrixView<const T> s, std::span<float> gradients);

  // Returns the modelled steps of the last run of a pass; none before the first one.
  const device::Ledger& last_run(Pass pass) const { return runs_[std::size_t(pass)]; }

 private:
  device::Ledger& run_of(Pass pass) { return runs_[std::size_t(pass)]; }
  bool is_half() const;
  void count_update();

  Make make_;
  runtime::FullyConnected layer_;
  std::optional<runtime::FullyConnected> spare_;  // with the weights of a prepared update
  double making_seconds_ = 0;
  Executor* executor_;
  UpdateTraffic traffic_;
  struct Searched {
    Problem problem;
    device::Machine machine;
  };
  std::optional<Searched> searched_;
  SearchFigures search_;
  std::array<device::Ledger, 3> runs_;
  std::vector<float> values_;  // scratch of change_values
};

}  // namespace tessera::train
