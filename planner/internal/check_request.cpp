#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/planner/internal/planner_search.hpp"

namespace tessera::planner::internal {
namespace {

[[noreturn]] void throw_invalid(const std::string& message) {
  throw Error(ErrorCode::InvalidArgument, message);
}

void check_stats(const Problem& problem, const PatternStats& stats) {
  const std::int64_t rows = problem.size.g * ceil_div(problem.size.x, problem.block.rows);
  const std::int64_t cols = problem.size.g * ceil_div(problem.size.y, problem.block.cols);
  if (stats.block == problem.block && std::ssize(stats.row_counts) == rows &&
      std::ssize(stats.col_counts) == cols)
    return;
  throw_invalid(fmt::format(
      "pattern statistics have {} rows and {} columns of {}x{} blocks; the layer has {} and {} of "
      "{}x{}",
      stats.row_counts.size(), stats.col_counts.size(), stats.block.rows, stats.block.cols, rows,
      cols, problem.block.rows, problem.block.cols));
}

// The counts nearest to `pin` that leave no share empty.
std::string nearest_counts(std::int64_t grains, std::int64_t pin) {
  const std::int64_t share = ceil_div(grains, pin);
  const std::int64_t below = ceil_div(grains, share);
  if (share == 1) return fmt::format("{}", below);
  return fmt::format("{} or {}", below, ceil_div(grains, share - 1));
}

bool is_share_count(std::int64_t grains, std::int64_t count) {
  return count <= grains && ceil_div(grains, ceil_div(grains, count)) == count;
}

// Methods differ in their grains: a pin must suit one of them.
void check_share_pin(const char* key, const std::optional<std::int64_t>& pin,
                     const std::vector<Case>& cases, std::int64_t Dims::*dim) {
  const auto suits = [&](const Case& c) { return is_share_count(c.grains.*dim, *pin); };
  if (!pin || std::any_of(cases.begin(), cases.end(), suits)) return;
  const std::int64_t grains = cases.front().grains.*dim;
  throw_invalid(fmt::format(
      "planConstraints.partition.{} is {}; {} grains cut into that many parts leave parts empty, "
      "the nearest legal values are {}",
      key, *pin, grains, nearest_counts(grains, *pin)));
}

void check_batch_pin(const std::vector<Case>& cases, const std::optional<std::int64_t>& pin) {
  if (!pin) return;
  for (const Case& c : cases)
    if (c.grains.z % *pin == 0) return;
  throw_invalid(fmt::format(
      "planConstraints.partition.z is {}; it must divide the batch in grains, {} of {} columns",
      *pin, cases.front().grains.z, cases.front().candidate.grain.z));
}

// A machine handed over as a value is an argument, not a file.
void check_machine(const device::Machine& machine) {
  try {
    device::check_machine(machine, machine.name);
  } catch (const Error& error) {
    throw_invalid(error.what());
  }
}

}  // namespace

void check_request(const Problem& problem, const device::Machine& machine, const Options& options,
                   const PatternStats* stats) {
  check_problem(problem);
  check_options(options);
  check_machine(machine);
  if (problem.size.g > machine.tiles)
    throw_invalid(fmt::format("groups is {}; it must be in 1..{}, the tiles of {}", problem.size.g,
                              machine.tiles, machine.name));
  if (stats != nullptr) check_stats(problem, *stats);
}

void check_pins(const std::vector<Case>& cases) {
  const Case& c = cases.front();
  const PlanConstraints& pins = c.options.constraints;
  const std::int64_t least_tiles =
      c.grains.g * pins.x.value_or(1) * pins.y.value_or(1) * pins.z.value_or(1);
  for (const auto& [key, pin] : {std::pair{"x", pins.x}, {"y", pins.y}, {"z", pins.z}})
    if (pin && (*pin < 1 || *pin > c.machine.tiles))
      throw_invalid(fmt::format("planConstraints.partition.{} is {}; it must be in 1..{}", key,
                                *pin, c.machine.tiles));
  if (least_tiles > c.machine.tiles)
    throw_invalid(fmt::format("planConstraints.partition needs {} tiles; {} has {}", least_tiles,
                              c.machine.name, c.machine.tiles));
  check_share_pin("x", pins.x, cases, &Dims::x);
  check_share_pin("y", pins.y, cases, &Dims::y);
  if (c.quirks().even_batch_parts) return check_batch_pin(cases, pins.z);
  check_share_pin("z", pins.z, cases, &Dims::z);
}

}  // namespace tessera::planner::internal
