#include "tessera/partitioner/internal/step_bound.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "tessera/partitioner/internal/one_step.hpp"

namespace tessera::partitioner::internal {
namespace {

using Amounts = std::vector<std::int64_t>;

std::int64_t sum_of_first(const Amounts& amounts, std::int64_t count) {
  const auto most = std::min<std::int64_t>(count, std::ssize(amounts));
  return std::accumulate(amounts.begin(), amounts.begin() + most, std::int64_t{0});
}

Amounts largest_first(Amounts amounts) {
  std::sort(amounts.begin(), amounts.end(), std::greater<>());
  return amounts;
}

class StepBound {
 public:
  explicit StepBound(const Transport& transport)
      : transport_(transport),
        by_capacity_(largest_first(transport.capacity)),
        x_blocks_(static_cast<std::size_t>(transport.splits.x)),
        x_capacity_(x_blocks_.size()),
        y_blocks_(static_cast<std::size_t>(transport.splits.y)),
        y_capacity_(y_blocks_.size()) {
    for (std::size_t cell = 0; cell < transport.blocks.size(); ++cell) {
      const std::size_t x = cell / y_blocks_.size(), y = cell % y_blocks_.size();
      x_blocks_[x] += transport.blocks[cell], x_capacity_[x] += transport.capacity[cell];
      y_blocks_[y] += transport.blocks[cell], y_capacity_[y] += transport.capacity[cell];
    }
    x_blocks_ = largest_first(std::move(x_blocks_));
    x_capacity_ = largest_first(std::move(x_capacity_));
  }

  bool may_do(std::int64_t steps) const {
    return cells_may_do(steps) && x_may_do(steps) && y_may_do(steps);
  }

 private:
  bool cells_may_do(std::int64_t steps) const {
    const std::int64_t elsewhere = sum_of_first(by_capacity_, steps);
    for (std::size_t cell = 0; cell < transport_.blocks.size(); ++cell)
      if (transport_.blocks[cell] >
          std::min(transport_.most_in_one[cell], transport_.capacity[cell]) + elsewhere)
        return false;
    return true;
  }

  bool x_may_do(std::int64_t steps) const {
    for (std::int64_t k = 1; k <= std::ssize(x_blocks_); ++k)
      if (sum_of_first(x_blocks_, k) > sum_of_first(x_capacity_, k * (steps + 1))) return false;
    return true;
  }

  // Blocks of cells at y are held at y, y - 1, ...
  bool y_may_do(std::int64_t steps) const {
    const std::int64_t splits = std::ssize(y_blocks_);
    for (std::int64_t begin = 0; begin < splits; ++begin) {
      std::int64_t blocks = 0, room = 0;
      for (std::int64_t i = 1; i <= std::min(steps, splits - 1); ++i)
        room += y_capacity_[static_cast<std::size_t>((begin - i + splits) % splits)];
      for (std::int64_t i = 0; i + steps < splits; ++i) {
        const auto y = static_cast<std::size_t>((begin + i) % splits);
        blocks += y_blocks_[y], room += y_capacity_[y];
        if (blocks > room) return false;
      }
    }
    return true;
  }

  const Transport& transport_;
  Amounts by_capacity_;            // largest first
  Amounts x_blocks_, x_capacity_;  // of x partitions, each list largest first
  Amounts y_blocks_, y_capacity_;  // of y partitions
};

bool all_may_stay(const Transport& transport) {
  for (std::size_t cell = 0; cell < transport.blocks.size(); ++cell)
    if (transport.blocks[cell] > std::min(transport.most_in_one[cell], transport.capacity[cell]))
      return false;
  return true;
}

}  // namespace

void for_each_single_step(
    const Transport& transport,
    const std::function<bool(std::int64_t, std::int64_t, const Routing&)>& visit) {
  const auto goes_on = [&](std::int64_t dx, std::int64_t dy) {
    const Routing routing = one_step_routing(transport, dx, dy);
    return routing.unplaced > 0 || visit(dx, dy, routing);
  };
  if (transport.splits.y > 1 && !goes_on(0, 1)) return;
  for (std::int64_t dx = 1; dx < transport.splits.x; ++dx)
    if (!goes_on(dx, 0)) return;
}

std::int64_t least_steps(const Transport& transport) {
  if (all_may_stay(transport)) return 0;
  const StepBound bound(transport);
  const std::int64_t most = transport.cells() - 1;  // all displacements
  std::int64_t steps = 1;
  while (steps < most && !bound.may_do(steps)) ++steps;
  if (steps > 1 || most == 1) return steps;
  bool can_do = false;
  for_each_single_step(transport, [&](auto...) {
    can_do = true;
    return false;
  });
  return can_do ? 1 : 2;
}

}  // namespace tessera::partitioner::internal
