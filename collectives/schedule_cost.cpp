#include "tessera/collectives/schedule_cost.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/collectives/make_schedule.hpp"

namespace tessera::collectives {
namespace {

// The bytes on the links of one level in one step. Each device of the pod has `ports` places.
class LevelLoad {
 public:
  LevelLoad(const device::PodLevel& level, std::int64_t devices)
      : level_(level), ports_(level.kind == device::LevelKind::Full ? level.devices : 2) {
    bytes_.assign(devices * ports_, 0.0);
  }

  // Adds a message between two positions of the level, which starts at `device`, whose neighbour on
  // the level has a number greater by `stride`. Returns the bytes that its hops send.
  double add(std::int64_t device, std::int64_t stride, std::int64_t from, std::int64_t to,
             double bytes) {
    used_ = true;
    const auto device_at = [&](std::int64_t position) {
      return device + (position - from) * stride;
    };
    switch (level_.kind) {
      case device::LevelKind::Ring:
        return add_hops(device_at, from, to, bytes);
      case device::LevelKind::Full:
        load(device, to, bytes);
        return bytes;
      case device::LevelKind::Switch:
        load(device, 0, bytes);         // to the switch
        load(device_at(to), 1, bytes);  // from it
        return bytes;
    }
    return 0;
  }

  // Returns the seconds of the busiest link, and removes all loads.
  double take_seconds() {
    const double busiest = *std::ranges::max_element(bytes_);
    std::ranges::fill(bytes_, 0.0);
    used_ = false;
    // A device divides its rate between its links to all others.
    const bool divides = level_.kind == device::LevelKind::Full;
    return busiest * double(divides ? level_.devices - 1 : 1) / level_.bytes_per_second;
  }

  bool used() const { return used_; }
  double step_seconds() const { return level_.step_seconds; }

 private:
  void load(std::int64_t device, std::int64_t port, double bytes) {
    bytes_[device * ports_ + port] += bytes;
  }

  template <class DeviceAt>
  double add_hops(const DeviceAt& device_at, std::int64_t from, std::int64_t to, double bytes) {
    const std::int64_t n = level_.devices;
    const std::int64_t up = (to - from + n) % n, down = n - up;
    const double up_bytes = up < down ? bytes : up == down ? bytes / 2 : 0;
    const double down_bytes = bytes - up_bytes;
    for (std::int64_t hop = 0; hop < up && up_bytes > 0; ++hop)
      load(device_at((from + hop) % n), 0, up_bytes);
    for (std::int64_t hop = 0; hop < down && down_bytes > 0; ++hop)
      load(device_at((from - hop + n) % n), 1, down_bytes);
    return up_bytes * double(up) + down_bytes * double(down);
  }

  const device::PodLevel& level_;
  std::int64_t ports_;
  std::vector<double> bytes_;
  bool used_ = false;
};

class Router {
 public:
  explicit Router(const device::Pod& pod) : pod_(pod) {
    for (const device::PodLevel& level : pod.levels) loads_.emplace_back(level, pod.devices());
    cost_.level_bytes.assign(pod.levels.size(), 0.0);
  }

  void add(std::int64_t from, std::int64_t to, double bytes) {
    std::int64_t device = from, stride = 1;
    for (std::size_t l = 0; l < loads_.size(); ++l) {
      const std::int64_t n = pod_.levels[l].devices;
      const std::int64_t here = device / stride % n, there = to / stride % n;
      if (here != there) cost_.level_bytes[l] += loads_[l].add(device, stride, here, there, bytes);
      device += (there - here) * stride;
      stride *= n;
    }
  }

  void end_step() {
    double latency = 0, busiest = 0;
    for (LevelLoad& load : loads_) {
      if (!load.used()) continue;
      latency = std::max(latency, load.step_seconds());
      busiest = std::max(busiest, load.take_seconds());
    }
    cost_.seconds += latency + busiest;
  }

  const ScheduleCost& cost() const { return cost_; }

 private:
  const device::Pod& pod_;
  std::vector<LevelLoad> loads_;
  ScheduleCost cost_;
};

void check_groups(const Schedule& schedule, std::span<const Group> groups, std::int64_t devices) {
  for (const Group& group : groups) {
    if (std::ssize(group) != schedule.members)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("a group has {} devices; the schedule is for {} members",
                              group.size(), schedule.members));
    for (const std::int64_t device : group)
      if (device < 0 || device >= devices)
        throw Error(ErrorCode::InvalidArgument,
                    fmt::format("a group has device {}; the pod has the devices 0..{}", device,
                                devices - 1));
  }
}

// Returns the most that a member of a gather sends in one step, in parts of a member. A sum sends
// the messages of the gather back, so that is what a member of it receives.
double most_sent(const Schedule& gather) {
  std::int32_t most = 0;
  std::vector<std::int32_t> pieces(gather.members);
  for (const std::vector<Transfer>& step : gather.steps) {
    std::ranges::fill(pieces, 0);
    for (const Transfer& t : step) most = std::max(most, pieces[t.from] += t.pieces);
  }
  return double(most) / gather.pieces_per_member;
}

}  // namespace

ScheduleCost schedule_cost(const Schedule& schedule, std::span<const Group> groups,
                           const device::Pod& pod, double piece_bytes) {
  check_groups(schedule, groups, pod.devices());
  Router router(pod);
  for (const std::vector<Transfer>& step : schedule.steps) {
    for (const Group& group : groups)
      for (const Transfer& t : step) router.add(group[t.from], group[t.to], piece_bytes * t.pieces);
    router.end_step();
  }
  return router.cost();
}

std::vector<Group> groups_of(const LevelPlace& place) {
  std::vector<Group> groups;
  for (std::int32_t first = 0; first < place.used; ++first) {
    if (first / place.stride % place.members != 0) continue;
    Group& group = groups.emplace_back();
    for (std::int32_t m = 0; m < place.members; ++m) group.push_back(first + m * place.stride);
  }
  return groups;
}

std::vector<LevelCost> level_costs(const device::PodLevel& level, const LevelPlace& place) {
  device::PodLevel unit = level;
  unit.bytes_per_second = 1;
  unit.step_seconds = 0;
  device::Pod pod;
  pod.levels = {unit};
  const std::vector<Group> groups = groups_of(place);
  std::vector<LevelCost> costs;
  for (const Algorithm algorithm : algorithms_for(place.members)) {
    const Schedule gather = make_schedule(Operation::AllGather, {place.members, algorithm});
    const ScheduleCost cost = schedule_cost(gather, groups, pod, 1.0 / gather.pieces_per_member);
    costs.push_back({algorithm, std::ssize(gather.steps), cost.seconds, cost.level_bytes.front(),
                     most_sent(gather)});
  }
  return costs;
}

}  // namespace tessera::collectives
