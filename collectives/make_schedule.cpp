#include "tessera/collectives/make_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "tessera/base/error.hpp"

namespace tessera::collectives {
namespace {

constexpr std::int64_t kMostMembers = 1 << 15;
constexpr std::int32_t kHalves = 2;  // of a part; some algorithms send one to each side

// A message of a gather on one level: the part of one member of the level, or a half of it.
struct PartMove {
  std::int32_t from = 0, to = 0;
  std::int32_t owner = 0;  // the member whose part it is
  std::int32_t half = -1;  // 0 or 1; -1: the whole part
};
using PartStep = std::vector<PartMove>;

// Calls visit(from, distance) for all members of a ring.
std::int32_t at(std::int32_t member, std::int32_t distance, std::int32_t n) {
  return ((member + distance) % n + n) % n;
}

// Every member passes on what it got in the step before: to the next one if direction is 1, to the
// previous one if it is -1.
void add_ring_step(PartStep& step, std::int32_t n, std::int32_t number, std::int32_t direction,
                   std::int32_t half) {
  for (std::int32_t m = 0; m < n; ++m)
    step.push_back({m, at(m, direction, n), at(m, -direction * number, n), half});
}

std::vector<PartStep> one_way_steps(std::int32_t n) {
  std::vector<PartStep> steps(n - 1);
  for (std::int32_t number = 0; number < n - 1; ++number)
    add_ring_step(steps[number], n, number, 1, -1);
  return steps;
}

std::vector<PartStep> two_way_steps(std::int32_t n) {
  std::vector<PartStep> steps(n - 1);
  for (std::int32_t number = 0; number < n - 1; ++number) {
    add_ring_step(steps[number], n, number, 1, 0);
    add_ring_step(steps[number], n, number, -1, 1);
  }
  return steps;
}

// With an even number of members, the part of the opposite one comes last: from one side, or a half
// of it from either side.
std::vector<PartStep> meeting_steps(std::int32_t n, bool by_halves) {
  std::vector<PartStep> steps(n / 2);
  for (std::int32_t number = 0; number < n / 2; ++number) {
    const bool is_last = n % 2 == 0 && number + 1 == n / 2;
    add_ring_step(steps[number], n, number, 1, is_last && by_halves ? 0 : -1);
    if (!is_last || by_halves) add_ring_step(steps[number], n, number, -1, is_last ? 1 : -1);
  }
  return steps;
}

std::vector<PartStep> direct_steps(std::int32_t n) {
  PartStep step;
  for (std::int32_t from = 0; from < n; ++from)
    for (std::int32_t distance = 1; distance < n; ++distance)
      step.push_back({from, at(from, distance, n), from, -1});
  if (step.empty()) return {};
  return {step};
}

// Partners at distance n / 2, ..., 2, 1 exchange all that they have: the parts of the members at
// multiples of twice the distance.
std::vector<PartStep> halving_steps(std::int32_t n) {
  std::vector<PartStep> steps;
  for (std::int32_t distance = n / 2; distance > 0; distance /= 2) {
    PartStep& step = steps.emplace_back();
    for (std::int32_t m = 0; m < n; ++m)
      for (std::int32_t owner = m % (2 * distance); owner < n; owner += 2 * distance)
        step.push_back({m, m ^ distance, owner, -1});
  }
  return steps;
}

std::vector<PartStep> gather_steps(LevelPart level) {
  switch (level.algorithm) {
    case Algorithm::OneWayRing:
      return one_way_steps(level.members);
    case Algorithm::TwoWayRing:
      return two_way_steps(level.members);
    case Algorithm::MeetInTheMiddle:
      return meeting_steps(level.members, false);
    case Algorithm::MeetByHalves:
      return meeting_steps(level.members, true);
    case Algorithm::Direct:
      return direct_steps(level.members);
    case Algorithm::Halving:
      return halving_steps(level.members);
  }
  return {};
}

// The members of one level in the numbering of the whole collective.
struct LevelMembers {
  std::int32_t stride = 1;    // between neighbours on the level
  std::int32_t members = 1;   // of the level
  std::int32_t all = 1;       // of the collective
  std::int32_t per_part = 1;  // pieces of a member of the collective
};

// Adds the transfers of a message for the group that has `first` as its first member. Members of
// outer levels have gathered already, so the part of a member on this level is that of all members
// with the same position on it and on the inner levels.
void add_transfers(std::vector<Transfer>& step, const PartMove& move, std::int32_t first,
                   const LevelMembers& level) {
  const std::int32_t pieces = move.half < 0 ? level.per_part : 1;
  const std::int32_t offset = std::max(move.half, 0);
  const std::int32_t inner = first % level.stride;
  const std::int32_t span = level.stride * level.members;
  for (std::int32_t outer = 0; outer < level.all; outer += span) {
    const std::int32_t owner = outer + move.owner * level.stride + inner;
    step.push_back({first + move.from * level.stride, first + move.to * level.stride,
                    owner * level.per_part + offset, pieces, false});
  }
}

void append_level(Schedule& gather, LevelPart part, std::int32_t stride) {
  const LevelMembers level{stride, part.members, gather.members, gather.pieces_per_member};
  for (const PartStep& moves : gather_steps(part)) {
    std::vector<Transfer>& step = gather.steps.emplace_back();
    for (std::int32_t first = 0; first < level.all; ++first)
      if (first / stride % part.members == 0)
        for (const PartMove& move : moves) add_transfers(step, move, first, level);
  }
}

// The sum is the gather in reverse: every message goes back and is added.
Schedule reversed(const Schedule& gather) {
  Schedule sum = gather;
  sum.operation = Operation::ReduceScatter;
  std::reverse(sum.steps.begin(), sum.steps.end());
  for (std::vector<Transfer>& step : sum.steps)
    for (Transfer& transfer : step) {
      std::swap(transfer.from, transfer.to);
      transfer.add = true;
    }
  return sum;
}

bool sends_halves(Algorithm algorithm) {
  return algorithm == Algorithm::TwoWayRing || algorithm == Algorithm::MeetByHalves;
}

std::int32_t checked_members(std::span<const LevelPart> levels) {
  std::int64_t members = 1;
  for (const LevelPart& level : levels) {
    const std::vector<Algorithm> legal = algorithms_for(std::max(level.members, 1));
    if (level.members < 1 || std::ranges::find(legal, level.algorithm) == legal.end())
      throw Error(
          ErrorCode::InvalidArgument,
          fmt::format("a collective of {} members on a level cannot use the algorithm {}; "
                      "halving takes powers of two, rings in two directions at least three, "
                      "meeting by halves an even number of at least four",
                      level.members, to_string(level.algorithm)));
    members = std::min(members * level.members, kMostMembers + 1);
  }
  if (members > kMostMembers)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("a schedule has at most {} members", kMostMembers));
  return std::int32_t(members);
}

}  // namespace

std::vector<Algorithm> algorithms_for(std::int32_t members) {
  std::vector<Algorithm> result = {Algorithm::OneWayRing, Algorithm::Direct};
  if (members > 2) result.push_back(Algorithm::TwoWayRing);
  if (members > 2) result.push_back(Algorithm::MeetInTheMiddle);
  if (members > 2 && members % 2 == 0) result.push_back(Algorithm::MeetByHalves);
  if (std::has_single_bit(std::uint32_t(members))) result.push_back(Algorithm::Halving);
  return result;
}

Schedule make_schedule(Operation operation, std::span<const LevelPart> levels) {
  Schedule gather{Operation::AllGather, checked_members(levels), 1, {}};
  for (const LevelPart& level : levels)
    if (sends_halves(level.algorithm)) gather.pieces_per_member = kHalves;
  std::int32_t stride = gather.members;
  for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
    stride /= level->members;
    append_level(gather, *level, stride);
  }
  switch (operation) {
    case Operation::AllGather:
      return gather;
    case Operation::ReduceScatter:
      return reversed(gather);
    case Operation::AllReduce:
      break;
  }
  Schedule both = reversed(gather);
  both.operation = Operation::AllReduce;
  both.steps.insert(both.steps.end(), gather.steps.begin(), gather.steps.end());
  return both;
}

Schedule make_schedule(Operation operation, LevelPart level) {
  return make_schedule(operation, std::span(&level, 1));
}

}  // namespace tessera::collectives
