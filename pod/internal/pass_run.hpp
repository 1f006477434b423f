#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tessera/base/matrix.hpp"
#include "tessera/collectives/run_schedule.hpp"
#include "tessera/pod/internal/pass_steps.hpp"

namespace tessera::pod::internal {

// One pass of a layer, on operands of the caller.
template <class T>
class PassRun {
 public:
  PassRun(LayerState& state, Pass pass, const layer::PassOptions& options,
          const DeviceOptions& target, PodLedger& ledger)
      : state_(state), pass_(pass), steps_(state, pass, options, target, ledger) {}

  bool product(MatrixView<const T> in, MatrixView<T> out) {
    const bool is_forward = pass_ == Pass::Fwd;
    for (std::int64_t part = 0; part < plan().serial_parts; ++part) {
      const auto operands = gathered(in, is_forward ? Operand::S : Operand::QGrad, part);
      if (!operands) return false;
      std::vector<Matrix<T>> results(state_.places().size());
      for (const std::size_t d : steps_.devices()) results[d] = slice_matrix(result(), d);
      const bool finished = steps_.run_devices(
          part,
          [&](std::size_t d, runtime::FullyConnected& layer, const auto& with,
              device::Ledger& cost) {
            const MatrixView<const T> operand = std::as_const((*operands)[d]).view();
            return is_forward ? layer.forward<T>(operand, results[d].view(), with, cost)
                              : layer.grad_a<T>(operand, results[d].view(), with, cost);
          },
          [&](std::size_t d) { return std::as_writable_bytes(std::span(results[d].elements())); });
      if (!finished || !sum_results(results, out, part)) return false;
    }
    steps_.end();
    return true;
  }

  bool gradient(MatrixView<const T> q_grad, MatrixView<const T> s, std::span<float> gradients) {
    std::vector<std::vector<float>> sums(state_.places().size());
    for (std::int64_t part = 0; part < plan().serial_parts; ++part) {
      const auto s_parts = gathered(s, Operand::S, part);
      if (!s_parts) return false;
      const auto q_parts = gathered(q_grad, Operand::QGrad, part);
      if (!q_parts) return false;
      const bool finished = steps_.run_devices(
          part,
          [&](std::size_t d, runtime::FullyConnected& layer, const auto& with,
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
    steps_.end();
    return true;
  }

 private:
  const PodPlan& plan() const { return state_.plan(); }
  Operand result() const { return pass_ == Pass::Fwd ? Operand::Q : Operand::SGrad; }

  // The last serial part may have fewer columns than the devices' programs; the others are zero.
  Matrix<T> slice_matrix(Operand operand, std::size_t d) const {
    const Slice slice = steps_.slice_of(operand, d, 0);
    return Matrix<T>(slice.all_rows(), size_at(plan(), state_.places()[d].at).z);
  }

  // Returns each device's slice of an operand: its home part from the caller, all others by the
  // schedule of the gather. Returns nothing if the caller wants to stop.
  std::optional<std::vector<Matrix<T>>> gathered(MatrixView<const T> operand, Operand name,
                                                 std::int64_t part) {
    std::vector<Matrix<T>> slices(state_.places().size());
    for (std::size_t d = 0; d < slices.size(); ++d) slices[d] = slice_matrix(name, d);
    PassSteps::Collective gather;
    if (!steps_.begin_collective(name, gather)) return {};
    for (const Members& members : gather.groups) {
      const Slice slice = steps_.slice_of(name, members.front(), part);  // the same for all
      const std::vector<float> missing(std::size_t(slice.elements()),
                                       std::numeric_limits<float>::quiet_NaN());
      std::vector<std::vector<float>> data(members.size(), missing);
      for (std::size_t m = 0; m < members.size(); ++m)
        for_each_element(slice, gather.part(slice.elements(), m),
                         [&](std::int64_t row, std::int64_t col, std::int64_t position) {
                           data[m][std::size_t(position)] = float(operand(row, col));
                         });
      run(gather, data);
      for (std::size_t m = 0; m < members.size(); ++m)
        for (std::int64_t p = 0; p < slice.elements(); ++p)
          slices[members[m]](p / slice.cols.size(), p % slice.cols.size()) =
              T(data[m][std::size_t(p)]);
    }
    return slices;
  }

  static void run(const PassSteps::Collective& collective, std::vector<std::vector<float>>& data) {
    if (collective.schedule)
      collectives::run_schedule(*collective.schedule,
                                std::vector<std::span<float>>(data.begin(), data.end()));
  }

  // Adds the partial results of all devices of a group, and writes each member's part to `out`.
  bool sum_results(const std::vector<Matrix<T>>& results, MatrixView<T> out, std::int64_t part) {
    PassSteps::Collective sum;
    if (!steps_.begin_collective(result(), sum)) return false;
    if (steps_.is_sample()) return true;
    for (const Members& members : sum.groups) {
      const Slice slice = steps_.slice_of(result(), members.front(), part);
      std::vector<std::vector<float>> data(members.size());
      for (std::size_t m = 0; m < members.size(); ++m)
        for (std::int64_t p = 0; p < slice.elements(); ++p)
          data[m].push_back(
              float(results[members[m]](p / slice.cols.size(), p % slice.cols.size())));
      run(sum, data);
      for (std::size_t m = 0; m < members.size(); ++m)
        for_each_element(slice, sum.part(slice.elements(), m),
                         [&](std::int64_t row, std::int64_t col, std::int64_t position) {
                           out(row, col) = T(data[m][std::size_t(position)]);
                         });
    }
    return true;
  }

  // Adds the gradients of the devices with the same part of R, and writes them to their places.
  // Leaves `sums` empty.
  bool sum_gradients(std::vector<std::vector<float>>& sums, std::span<float> gradients) {
    PassSteps::Collective sum;
    if (!steps_.begin_collective(Operand::Gradient, sum)) return false;
    if (steps_.is_sample()) return true;
    for (const Members& members : sum.groups) {
      std::vector<std::vector<float>> data;
      for (const std::size_t d : members) data.push_back(std::move(sums[d]));
      run(sum, data);
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

  LayerState& state_;
  const Pass pass_;
  PassSteps steps_;
};

}  // namespace tessera::pod::internal
