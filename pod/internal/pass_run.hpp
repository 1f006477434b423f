#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/base/data_type.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/pod/device_split.hpp"
#include "tessera/pod/internal/device_outcome.hpp"
#include "tessera/pod/internal/device_set.hpp"
#include "tessera/pod/internal/move_data.hpp"
#include "tessera/pod/internal/pod_cost.hpp"
#include "tessera/pod/pod_layer.hpp"

namespace tessera::pod::internal {

// The roles of the axes in a product: rows of the operand are cut along one, rows of the result
// along the other.
struct ProductAxes {
  Axis in = Axis::Y, out = Axis::X;
};

inline ProductAxes axes_of(Pass pass) {
  return pass == Pass::GradA ? ProductAxes{Axis::X, Axis::Y} : ProductAxes{};
}

// One device's rectangle of an operand, for each of its groups.
struct Slice {
  Range groups, rows, cols;
  std::int64_t rows_of_group = 0;  // of the whole operand

  std::int64_t all_rows() const { return groups.size() * rows.size(); }
  std::int64_t elements() const { return all_rows() * cols.size(); }

  // Returns the row of the operand that is row r of the slice.
  std::int64_t row(std::int64_t r) const {
    return (groups.begin + r / rows.size()) * rows_of_group + rows.begin + r % rows.size();
  }
};

// Calls visit(row, column, position) for the positions of a range in a slice.
template <class Visit>
void for_each_element(const Slice& slice, Range positions, Visit&& visit) {
  const std::int64_t cols = slice.cols.size();
  for (std::int64_t p = positions.begin; p < positions.end; ++p)
    visit(slice.row(p / cols), slice.cols.begin + p % cols, p);
}

// Adds the figures of one device's check to those of all, with the device where they name a place.
inline void add_checksums(const verify::Checksums& one, std::int64_t device, verify::Checksums& all,
                          bool is_first) {
  const auto name = [device](const std::string& place, std::string& first) {
    if (first.empty() && !place.empty()) first = fmt::format("device {}, {}", device, place);
  };
  all.exact = one.exact && (is_first || all.exact);
  all.compared += one.compared;
  all.recomputed += one.recomputed;
  all.damaged += one.damaged;
  all.wrong_rows += one.wrong_rows;
  all.wrong_cols += one.wrong_cols;
  all.worst = std::max(all.worst, one.worst);
  name(one.first_failure, all.first_failure);
  name(one.first_damage, all.first_damage);
  if (all.first_wrong_row < 0) all.first_wrong_row = one.first_wrong_row;
  if (all.first_wrong_col < 0) all.first_wrong_col = one.first_wrong_col;
}

// The state of a layer that it keeps from pass to pass.
struct LayerState {
  LayerState(const PodPlan& given, device::ExchangeMode mode, DeviceOrder order, Executor& executor)
      : devices(given, mode, order, executor), prices(devices.plan().pod) {
    for (std::size_t d = 0; d < places().size(); ++d) all.push_back(d);
  }

  const PodPlan& plan() const { return devices.plan(); }
  const std::vector<DevicePlace>& places() const { return devices.places(); }
  const Problem& problem() const { return plan().problem; }

  // The largest number of non-zeros of a device, which a sum of gradients moves.
  std::int64_t most_values() const {
    std::int64_t most = 0;
    for (const std::size_t d : all)
      most = std::max(most, devices.cell(devices.cell_of(d)).values());
    return most;
  }

  std::int64_t first_value(std::int64_t group) const {
    std::int64_t sum = 0;
    for (std::int64_t g = 0; g < group; ++g) sum += std::ssize(weights[std::size_t(g)]->values);
    return sum;
  }

  DeviceSet devices;
  LevelPrices prices;
  std::vector<std::size_t> all;                    // devices
  std::vector<sparse::CheckedCsr<float>> weights;  // [groups]; empty before the first
};

// One pass of a layer.
template <class T>
class PassRun {
 public:
  PassRun(LayerState& state, Pass pass, const layer::PassOptions& options,
          const DeviceOptions& target, PodLedger& ledger)
      : state_(state),
        pass_(pass),
        options_(options),
        target_(target),
        ledger_(ledger),
        devices_(chosen()) {
    ledger_ = {pass, {}, std::ssize(devices_)};
    const Dims parts = plan().grid.parts();
    needs_ = collectives_of(plan().problem, pass, parts, plan().serial_parts,
                            largest_share(plan().problem, parts, plan().serial_parts),
                            state.most_values());
    if (options_.self_check != nullptr) *options_.self_check = {};
  }

  bool product(MatrixView<const T> in, MatrixView<T> out) {
    for (std::int64_t part = 0; part < plan().serial_parts; ++part) {
      const auto operands = gathered(in, axes_of(pass_).in, input_operand(), part);
      if (!operands) return false;
      std::vector<Matrix<T>> results(state_.places().size());
      for (const std::size_t d : devices_) results[d] = result_matrix(axes_of(pass_).out, d);
      const bool finished = run_devices(
          part,
          [&](std::size_t d, runtime::FullyConnected& layer, const layer::PassOptions& with,
              device::Ledger& cost) {
            const MatrixView<const T> operand = std::as_const((*operands)[d]).view();
            return pass_ == Pass::Fwd ? layer.forward<T>(operand, results[d].view(), with, cost)
                                      : layer.grad_a<T>(operand, results[d].view(), with, cost);
          },
          [&](std::size_t d) { return std::as_writable_bytes(std::span(results[d].elements())); });
      if (!finished || !sum_results(results, out, part)) return false;
    }
    return end();
  }

  bool gradient(MatrixView<const T> q_grad, MatrixView<const T> s, std::span<float> gradients) {
    std::vector<std::vector<float>> sums(state_.places().size());
    for (std::int64_t part = 0; part < plan().serial_parts; ++part) {
      const auto s_parts = gathered(s, Axis::Y, Operand::S, part);
      if (!s_parts) return false;
      const auto q_parts = gathered(q_grad, Axis::X, Operand::QGrad, part);
      if (!q_parts) return false;
      const bool finished = run_devices(
          part,
          [&](std::size_t d, runtime::FullyConnected& layer, const layer::PassOptions& with,
              device::Ledger& cost) {
            std::vector<float> own(std::size_t(layer.values()));
            const bool done = layer.grad_w<T>(std::as_const((*q_parts)[d]).view(),
                                              std::as_const((*s_parts)[d]).view(), own, with, cost);
            if (part == 0) sums[d].assign(own.size(), 0.0F);
            std::ranges::transform(sums[d], own, sums[d].begin(),
                                   [](float a, float b) { return a + b; });
            return done;
          },
          [&](std::size_t d) {
            sums[d].resize(std::size_t(state_.devices.cell(state_.devices.cell_of(d)).values()));
            return std::as_writable_bytes(std::span(sums[d]));
          });
      if (!finished) return false;
    }
    if (!sum_gradients(sums, gradients)) return false;
    return end();
  }

 private:
  const PodPlan& plan() const { return state_.plan(); }
  bool is_sample() const { return devices_.size() < state_.all.size(); }

  Operand input_operand() const { return pass_ == Pass::Fwd ? Operand::S : Operand::QGrad; }

  // The devices that run: all, or some of them, evenly spread.
  std::vector<std::size_t> chosen() const {
    const std::int64_t all = std::ssize(state_.all), wanted = target_.devices_simulated;
    if (wanted < 0 || wanted > all)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("devices_simulated is {}; it must be in 0..{}, the devices in use, "
                              "and 0 means all of them",
                              wanted, all));
    if (wanted == 0) return state_.all;
    std::vector<std::size_t> some;
    for (std::int64_t i = 0; i < wanted; ++i) some.push_back(std::size_t(i * all / wanted));
    return some;
  }

  // Reports the next step. Returns false if the caller wants to stop.
  bool begin(std::string_view name) {
    const bool stops = options_.stop.stop_requested();
    if (target_.split != nullptr ? target_.split->any(stops) : stops) return false;
    if (options_.progress) options_.progress({name, std::ssize(ledger_.steps)});
    return true;
  }

  std::int64_t rows_of(Axis axis) const {
    return axis == Axis::X ? plan().problem.size.x : plan().problem.size.y;
  }

  // Returns the slice of an operand whose rows are cut along `axis`, in one serial part.
  Slice slice_of(Axis axis, std::size_t d, std::int64_t part) const {
    const Shares shares = shares_at(plan().problem, plan().grid.parts(), state_.places()[d].at);
    const Range cols = share_of(shares.z.size(), 1, plan().serial_parts, part);
    return {shares.g,
            axis == Axis::X ? shares.x : shares.y,
            {shares.z.begin + cols.begin, shares.z.begin + cols.end},
            rows_of(axis)};
  }

  // The last serial part may have fewer columns than the devices' programs; the others are zero.
  Matrix<T> result_matrix(Axis axis, std::size_t d) const {
    const Slice slice = slice_of(axis, d, 0);
    return Matrix<T>(slice.all_rows(), size_at(plan(), state_.places()[d].at).z);
  }

  const CollectiveNeed* need_of(Operand operand) const {
    const auto found = std::ranges::find(needs_, operand, &CollectiveNeed::operand);
    return found == needs_.end() ? nullptr : &*found;
  }

  // Returns the schedule of a collective and adds its step to the ledger. `sized` is the collective
  // with the sizes of the real parts.
  collectives::Schedule add_collective(const CollectiveNeed& need, std::int64_t part) {
    PricedCollective cost =
        priced(state_.prices, plan().grid, need, bytes_of(plan().problem.data_type));
    collectives::Schedule schedule =
        collectives::make_schedule(need.operation, cost.collective.levels);
    const double seconds = cost.collective.seconds;
    ledger_.steps.push_back({part, seconds, {}, std::move(cost.collective)});
    return schedule;
  }

  // Returns each device's slice of an operand: its home part from the caller, all others by the
  // schedule of the gather. Returns nothing if the caller wants to stop.
  std::optional<std::vector<Matrix<T>>> gathered(MatrixView<const T> operand, Axis rows_axis,
                                                 Operand name, std::int64_t part) {
    std::vector<Matrix<T>> slices(state_.places().size());
    for (const std::size_t d : state_.all) slices[d] = result_matrix(rows_axis, d);
    const CollectiveNeed* need = need_of(name);
    if (need == nullptr) {
      for (const std::size_t d : devices_) take(slice_of(rows_axis, d, part), operand, slices[d]);
      return slices;
    }
    if (!begin(collectives::to_string(need->operation))) return {};
    const collectives::Schedule schedule = add_collective(*need, part);
    for (const Members& members : groups_along(plan().grid, state_.places(), need->axis))
      gather_group(members, schedule, operand, rows_axis, part, slices);
    return slices;
  }

  // Writes the columns of a slice of the caller's operand.
  static void take(const Slice& slice, MatrixView<const T> operand, Matrix<T>& to) {
    for (std::int64_t r = 0; r < slice.all_rows(); ++r)
      for (std::int64_t c = 0; c < slice.cols.size(); ++c)
        to(r, c) = operand(slice.row(r), slice.cols.begin + c);
  }

  void gather_group(const Members& members, const collectives::Schedule& schedule,
                    MatrixView<const T> operand, Axis rows_axis, std::int64_t part,
                    std::vector<Matrix<T>>& slices) {
    const Slice slice = slice_of(rows_axis, members.front(), part);  // the same for all members
    std::vector<std::vector<float>> data(
        members.size(),
        std::vector<float>(std::size_t(slice.elements()), std::numeric_limits<float>::quiet_NaN()));
    for (std::size_t m = 0; m < members.size(); ++m)
      for_each_element(slice, part_range(schedule, slice.elements(), std::int32_t(m)),
                       [&](std::int64_t row, std::int64_t col, std::int64_t position) {
                         data[m][std::size_t(position)] = float(operand(row, col));
                       });
    collectives::run_schedule(schedule, std::vector<std::span<float>>(data.begin(), data.end()));
    const std::int64_t cols = std::max<std::int64_t>(slice.cols.size(), 1);
    for (std::size_t m = 0; m < members.size(); ++m)
      for (std::int64_t p = 0; p < slice.elements(); ++p)
        slices[members[m]](p / cols, p % cols) = T(data[m][std::size_t(p)]);
  }

  // Runs the device step. Each device has a ledger and, if the caller wants them, checksums.
  // results_of(device) returns the memory of its results.
  template <class Run, class Results>
  bool run_devices(std::int64_t part, Run&& run, const Results& results_of) {
    if (!begin("devices")) return false;
    std::vector<DeviceOutcome> outcomes(state_.places().size());
    const Range own = target_.split != nullptr ? target_.split->own(std::ssize(devices_))
                                               : Range{0, std::ssize(devices_)};
    const auto own_devices =
        std::span(devices_).subspan(std::size_t(own.begin), std::size_t(own.size()));
    state_.devices.for_each(own_devices, [&](std::size_t d, runtime::FullyConnected& layer) {
      DeviceOutcome& outcome = outcomes[d];
      const runtime::TilePass with = device_options(d, part, outcome.checks);
      device::Ledger cost;
      try {
        outcome.stopped = !run(d, layer, with, cost);
      } catch (const Error& error) {
        throw Error(error.code(), fmt::format("device {} ({}): {}", state_.places()[d].device,
                                              to_string(state_.places()[d].at), error.what()));
      }
      outcome.figures = {state_.places()[d].device, cost.total(), cost.moved()};
    });
    if (target_.split != nullptr) take_others(own, outcomes, results_of);
    if (std::ranges::any_of(outcomes, &DeviceOutcome::stopped)) return false;
    add_device_step(part, outcomes);
    if (options_.self_check != nullptr)
      for (std::size_t i = 0; i < devices_.size(); ++i)
        add_checksums(outcomes[devices_[i]].checks, state_.places()[devices_[i]].device,
                      *options_.self_check, part == 0 && i == 0);
    return true;
  }

  // Exchanges the outcomes and the results of devices with the other processes.
  template <class Results>
  void take_others(Range own, std::vector<DeviceOutcome>& outcomes, const Results& results_of) {
    std::vector<std::vector<std::byte>> lists(devices_.size());
    const auto is_own = [&](std::size_t i) {
      return own.begin <= std::int64_t(i) && std::int64_t(i) < own.end;
    };
    for (std::size_t i = 0; i < devices_.size(); ++i)
      if (is_own(i)) lists[i] = pack(outcomes[devices_[i]], results_of(devices_[i]));
    target_.split->complete(lists);
    for (std::size_t i = 0; i < devices_.size(); ++i)
      if (!is_own(i)) outcomes[devices_[i]] = unpack(lists[i], results_of(devices_[i]));
  }

  runtime::TilePass device_options(std::size_t d, std::int64_t part,
                                   verify::Checksums& check) const {
    runtime::TilePass with;
    with.pass.stop = options_.stop;
    if (options_.self_check != nullptr) with.pass.self_check = &check;
    with.pass.repair = options_.repair;
    const bool struck = target_.fault && target_.fault->device == state_.places()[d].device;
    if (struck && part == 0) {
      with.tiles.fault = target_.fault->fault;
      with.tiles.struck = target_.struck;
    }
    return with;
  }

  void add_device_step(std::int64_t part, const std::vector<DeviceOutcome>& outcomes) {
    PodStep step{part, 0, {}, {}};
    for (const std::size_t d : devices_) step.devices.push_back(outcomes[d].figures);
    Cycles cycles = step.slowest()->cycles;
    if (pass_ == Pass::GradW && part > 0) cycles += planned_add_cycles();
    step.seconds = double(cycles.value) / plan().pod.machine.clock_hz;
    ledger_.steps.push_back(std::move(step));
  }

  Cycles planned_add_cycles() const {
    const auto row = std::ranges::find(plan().passes, Pass::GradW, &PodPass::pass);
    return row == plan().passes.end() ? Cycles() : row->add_cycles;
  }

  // Adds the partial results of all devices of a group, and writes each member's part to `out`.
  bool sum_results(const std::vector<Matrix<T>>& results, MatrixView<T> out, std::int64_t part) {
    const Axis out_axis = axes_of(pass_).out;
    const CollectiveNeed* need = need_of(pass_ == Pass::Fwd ? Operand::Q : Operand::SGrad);
    if (need == nullptr) {
      if (!is_sample())
        for (const std::size_t d : devices_) give(slice_of(out_axis, d, part), results[d], out);
      return true;
    }
    if (!begin(collectives::to_string(need->operation))) return false;
    const collectives::Schedule schedule = add_collective(*need, part);
    if (is_sample()) return true;
    for (const Members& members : groups_along(plan().grid, state_.places(), need->axis))
      sum_group(members, schedule, results, out, part);
    return true;
  }

  static void give(const Slice& slice, const Matrix<T>& from, MatrixView<T> out) {
    for (std::int64_t r = 0; r < slice.all_rows(); ++r)
      for (std::int64_t c = 0; c < slice.cols.size(); ++c)
        out(slice.row(r), slice.cols.begin + c) = from(r, c);
  }

  void sum_group(const Members& members, const collectives::Schedule& schedule,
                 const std::vector<Matrix<T>>& results, MatrixView<T> out, std::int64_t part) {
    const Slice slice = slice_of(axes_of(pass_).out, members.front(), part);
    const std::int64_t cols = std::max<std::int64_t>(slice.cols.size(), 1);
    std::vector<std::vector<float>> data(members.size());
    for (std::size_t m = 0; m < members.size(); ++m) {
      data[m].resize(std::size_t(slice.elements()));
      for (std::int64_t p = 0; p < slice.elements(); ++p)
        data[m][std::size_t(p)] = float(results[members[m]](p / cols, p % cols));
    }
    collectives::run_schedule(schedule, std::vector<std::span<float>>(data.begin(), data.end()));
    for (std::size_t m = 0; m < members.size(); ++m)
      for_each_element(slice, part_range(schedule, slice.elements(), std::int32_t(m)),
                       [&](std::int64_t row, std::int64_t col, std::int64_t position) {
                         out(row, col) = T(data[m][std::size_t(position)]);
                       });
  }

  // Adds the gradients of the devices with the same part of R, and writes them to their places.
  bool sum_gradients(std::vector<std::vector<float>>& sums, std::span<float> gradients) {
    const CollectiveNeed* need = need_of(Operand::Gradient);
    std::optional<collectives::Schedule> schedule;
    if (need != nullptr) {
      if (!begin(collectives::to_string(need->operation))) return false;
      schedule = add_collective(*need, plan().serial_parts - 1);
    }
    if (is_sample()) return true;
    for (const Members& members : groups_along(plan().grid, state_.places(), Axis::Z)) {
      std::vector<std::span<float>> data;
      for (const std::size_t d : members) data.emplace_back(sums[d]);
      if (schedule) collectives::run_schedule(*schedule, data);
      write_gradients(members.front(), data.front(), gradients);
    }
    return true;
  }

  void write_gradients(std::size_t d, std::span<float> sum, std::span<float> gradients) const {
    for (float& value : sum) value = float(T(value));
    const Cell& cell = state_.devices.cell(state_.devices.cell_of(d));
    const Shares shares = shares_at(plan().problem, plan().grid.parts(), state_.places()[d].at);
    std::int64_t next = 0;
    for (std::size_t i = 0; i < cell.parts.size(); ++i) {
      const std::int64_t count = std::ssize(cell.parts[i]->values);
      const std::int64_t group = shares.g.begin + std::int64_t(i);
      copy_to_whole(cell.runs[i], plan().problem.block.area(),
                    sum.subspan(std::size_t(next), std::size_t(count)),
                    gradients.subspan(std::size_t(state_.first_value(group))));
      next += count;
    }
  }

  // A barrier over the devices in use ends the pass.
  bool end() {
    const double seconds = barrier_seconds(plan().pod, plan().grid);
    if (seconds > 0) ledger_.steps.push_back({plan().serial_parts - 1, seconds, {}, {}});
    return true;
  }

  LayerState& state_;
  const Pass pass_;
  const layer::PassOptions& options_;
  const DeviceOptions& target_;
  PodLedger& ledger_;
  const std::vector<std::size_t> devices_;
  std::vector<CollectiveNeed> needs_;
};

}  // namespace tessera::pod::internal
