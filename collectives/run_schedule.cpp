#include "tessera/collectives/run_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/error.hpp"

namespace tessera::collectives {
namespace {

using Data = std::span<const std::span<float>>;

// The values of a transfer's pieces.
Range range_of(const Schedule& schedule, const Transfer& t, std::size_t size) {
  const std::int64_t all = std::int64_t(size);
  return {share_of(all, 1, schedule.pieces(), t.first).begin,
          share_of(all, 1, schedule.pieces(), t.first + t.pieces - 1).end};
}

void check_data(const Schedule& schedule, Data data) {
  if (std::ssize(data) != schedule.members)
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("{} members have data; the schedule is for {}", data.size(), schedule.members));
  for (const std::span<float>& one : data)
    if (one.size() != data[0].size())
      throw Error(
          ErrorCode::InvalidArgument,
          fmt::format("a member has {} values and another one {}", one.size(), data[0].size()));
}

// Copies what the transfers of a gather name. No member sends a piece in the step that brings it,
// so the transfers of a step do not disturb each other.
void copy_step(const Schedule& schedule, const std::vector<Transfer>& step, Data data) {
  for (const Transfer& t : step) {
    if (t.add) continue;
    const Range range = range_of(schedule, t, data[0].size());
    const std::span<float> from = data[t.from].subspan(range.begin, range.size());
    std::ranges::copy(from, data[t.to].begin() + range.begin);
  }
}

// The contributions that reach the members: which members' values each of their pieces contains.
class Arrivals {
 public:
  Arrivals(std::int32_t members, std::int32_t pieces)
      : members_(members), pieces_(pieces), has_(std::size_t(members) * pieces * members) {
    for (std::int32_t m = 0; m < members; ++m)
      for (std::int32_t p = 0; p < pieces; ++p) has_[place(m, p) + m] = true;
  }

  void add_step(const std::vector<Transfer>& step) {
    const std::vector<bool> before = has_;
    for (const Transfer& t : step) {
      if (!t.add) continue;
      for (std::int32_t p = t.first; p < t.first + t.pieces; ++p)
        for (std::int32_t m = 0; m < members_; ++m)
          if (before[place(t.from, p) + m]) has_[place(t.to, p) + m] = true;
    }
  }

  bool has(std::int32_t member, std::int32_t piece, std::int32_t contribution) const {
    return has_[place(member, piece) + contribution];
  }

 private:
  std::size_t place(std::int32_t member, std::int32_t piece) const {
    return (std::size_t(member) * pieces_ + piece) * members_;
  }
  std::int32_t members_, pieces_;
  std::vector<bool> has_;
};

// Sets the part of every member to the sum of the contributions that reached it.
void set_sums(const Schedule& schedule, const Arrivals& arrivals,
              const std::vector<std::vector<float>>& own, Data data) {
  const std::int64_t size = std::int64_t(data[0].size());
  for (std::int32_t piece = 0; piece < schedule.pieces(); ++piece) {
    const std::int32_t owner = piece / schedule.pieces_per_member;
    const Range range = share_of(size, 1, schedule.pieces(), piece);
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      float sum = 0;
      for (std::int32_t m = 0; m < schedule.members; ++m)
        if (arrivals.has(owner, piece, m)) sum += own[m][i];
      data[owner][i] = sum;
    }
  }
}

// A step adds or copies; the steps that add come first.
bool adds(const std::vector<Transfer>& step) { return !step.empty() && step[0].add; }

}  // namespace

void run_schedule(const Schedule& schedule, Data data) {
  check_data(schedule, data);
  std::size_t next = 0;
  if (schedule.operation == Operation::ReduceScatter ||
      schedule.operation == Operation::AllReduce) {
    std::vector<std::vector<float>> own;
    for (const std::span<float>& one : data) own.emplace_back(one.begin(), one.end());
    Arrivals arrivals(schedule.members, schedule.pieces());
    for (; next < schedule.steps.size() && adds(schedule.steps[next]); ++next)
      arrivals.add_step(schedule.steps[next]);
    set_sums(schedule, arrivals, own, data);
  }
  for (; next < schedule.steps.size(); ++next) copy_step(schedule, schedule.steps[next], data);
}

}  // namespace tessera::collectives
