#include "tessera/bench/published/nested_loops.hpp"

#include <algorithm>
#include <array>

namespace tessera::bench {
namespace {

class Counter {
 public:
  Counter(const partitioner::Travel& travel, const Dims& splits) : travel_(travel) {
    const std::int64_t x_end = travel.x_end();
    end_ = {x_end, x_end > 1 ? splits.y : travel.largest_y_end(), splits.z};
    is_cut_ = {splits.x > 1, splits.y > 1, splits.z > 1};
    remaining_ = end_[0] * end_[1] * end_[2] - end_[2];
    if (at_[1] >= end_[1]) at_ = {1, 0, 0};
  }

  NestedLoops count() {
    ++work_.updates;    // the number of visits
    ++work_.decisions;  // whether there are any
    if (remaining_ == 0) return work_;
    ++work_.moves;
    ++work_.updates;  // the number of the buffer
    loop(next_cut(0));
    return work_;
  }

 private:
  static constexpr std::size_t kAxes = 3;

  // Returns the first axis that is cut, from `axis` on.
  std::size_t next_cut(std::size_t axis) const {
    while (axis < kAxes && !is_cut_[axis]) ++axis;
    return axis;
  }

  bool has_blocks_at_x() const { return travel_.y_end[std::size_t(at_[0])] != 0; }

  void loop(std::size_t axis) {
    const std::size_t inner = next_cut(axis + 1);
    for (;;) {
      ++work_.decisions;
      if (remaining_ == 0 || at_[axis] >= end_[axis]) return;
      if (axis == 0) ++work_.decisions;
      if (axis == 0 && !has_blocks_at_x())
        pass();
      else if (inner < kAxes)
        loop(inner);
      else
        visit();
      ++work_.decisions;
      if (remaining_ > 0) move(axis);
    }
  }

  void pass() {
    ++work_.updates;
    remaining_ -= (end_[1] - at_[1]) * (end_[2] - at_[2]);
  }

  void visit() {
    ++work_.decisions;  // the buffer to read
    ++work_.visits;
    ++work_.updates;
    --remaining_;
  }

  void move(std::size_t axis) {
    work_.updates += 2;  // the number of the buffer and the index
    ++work_.decisions;   // the buffer to write
    ++work_.moves;
    ++at_[axis];
    std::fill(at_.begin() + std::ptrdiff_t(axis) + 1, at_.end(), 0);
  }

  const partitioner::Travel& travel_;
  std::array<std::int64_t, kAxes> end_{}, at_{0, 1, 0};
  std::array<bool, kAxes> is_cut_{};
  std::int64_t remaining_ = 0;
  NestedLoops work_;
};

// Adds copies of the last step of this kind in which data were propagated.
void repeat_last(device::Ledger& ledger, StepKind kind, std::int64_t times) {
  const auto last = std::find_if(ledger.steps.rbegin(), ledger.steps.rend(), [&](const auto& s) {
    return s.phase == Phase::Propagate && s.kind == kind;
  });
  if (last == ledger.steps.rend() || times <= 0) return;
  const device::StepRecord step = *last;
  ledger.steps.insert(ledger.steps.end(), std::size_t(times), step);
}

}  // namespace

NestedLoops nested_loops(const partitioner::Travel& travel, const Dims& splits) {
  return Counter(travel, splits).count();
}

void charge_nested_loops(const partitioner::Travel& travel, const Dims& splits,
                         const device::Machine& machine, device::Ledger& ledger) {
  const auto decision =
      std::ranges::find(ledger.steps, StepKind::Control, &device::StepRecord::kind);
  if (travel.stays_home() || decision == ledger.steps.end()) return;
  NestedLoops more = nested_loops(travel, splits);
  for (const device::StepRecord& step : ledger.steps) {
    more.decisions -= step.kind == StepKind::Control;
    more.moves -= step.phase == Phase::Propagate && step.kind == StepKind::Exchange;
    more.visits -= step.phase == Phase::Propagate && step.kind == StepKind::Compute;
  }
  const device::StepRecord decides = *decision;
  device::StepRecord updates = decides;
  updates.kind = StepKind::Compute;
  updates.overhead = machine.launch;
  repeat_last(ledger, StepKind::Exchange, more.moves);
  repeat_last(ledger, StepKind::Compute, more.visits);
  ledger.steps.insert(ledger.steps.end(), std::size_t(std::max<std::int64_t>(0, more.decisions)),
                      decides);
  ledger.steps.insert(ledger.steps.end(), std::size_t(more.updates), updates);
}

}  // namespace tessera::bench
