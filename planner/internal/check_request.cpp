#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/planner/internal/planner_search.hpp"

namespace tessera::planner::internal {
namespace {

void check_counts(const char* name, const std::vector<std::int32_t>& counts, std::int64_t most) {
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i] < 0 || counts[i] > most)
      throw_invalid(fmt::format("pattern statistics: {}[{}] is {}; it must be in 0..{}", name, i,
                                counts[i], most));
}

// Checks that the map consists of running sums of counts and counts all blocks.
void check_map(const PatternStats& stats) {
  if (stats.before.empty()) return;
  if (stats.bin.rows < 1 || stats.bin.cols < 1)
    throw_invalid(fmt::format("pattern statistics: bin is {}x{}; its sides must be at least 1",
                              stats.bin.rows, stats.bin.cols));
  const std::int64_t width = stats.bin_cols() + 1, height = stats.bin_rows() + 1;
  if (std::ssize(stats.before) != width * height)
    throw_invalid(fmt::format("pattern statistics: before has {} counts; {} x {} bins have {}",
                              stats.before.size(), height - 1, width - 1, width * height));
  const auto at = [&](std::int64_t i, std::int64_t j) {
    return stats.before[std::size_t(i * width + j)];
  };
  for (std::int64_t i = 0; i < height; ++i)
    for (std::int64_t j = 0; j < width; ++j) {
      const bool edge = i == 0 || j == 0;
      const std::int64_t bin =
          edge ? at(i, j) : at(i, j) - at(i - 1, j) - at(i, j - 1) + at(i - 1, j - 1);
      if (edge ? bin != 0 : bin < 0 || bin > stats.bin.area())
        throw_invalid(fmt::format(
            "pattern statistics: before[{}][{}] is {}, so a bin of {} places would hold {}", i, j,
            at(i, j), stats.bin.area(), bin));
    }
  if (at(height - 1, width - 1) != stats.blocks())
    throw_invalid(fmt::format("pattern statistics: the map counts {} blocks, row_counts {}",
                              at(height - 1, width - 1), stats.blocks()));
}

void check_stats(const Problem& problem, const PatternStats& stats) {
  const std::int64_t rows = ceil_div(problem.size.x, problem.block.rows);
  const std::int64_t cols = ceil_div(problem.size.y, problem.block.cols), groups = problem.size.g;
  if (stats.block != problem.block || std::ssize(stats.row_counts) != groups * rows ||
      std::ssize(stats.col_counts) != groups * cols)
    throw_invalid(fmt::format(
        "pattern statistics have {} rows and {} columns of {}x{} blocks; the layer has {} and {} "
        "of {}x{}",
        stats.row_counts.size(), stats.col_counts.size(), stats.block.rows, stats.block.cols,
        groups * rows, groups * cols, problem.block.rows, problem.block.cols));
  check_counts("row_counts", stats.row_counts, cols);
  check_counts("col_counts", stats.col_counts, rows);
  check_map(stats);
}

// Returns the counts nearest to `pin` that leave no share empty, as text.
std::string nearest_counts(std::int64_t grains, std::int64_t pin) {
  const std::int64_t share = ceil_div(grains, pin);
  const std::int64_t below = ceil_div(grains, share);
  if (share == 1) return fmt::format("{}", below);
  return fmt::format("{} or {}", below, ceil_div(grains, share - 1));
}

// Checks that a pin suits at least one method; methods differ in their grains.
void check_share_pin(const char* key, const std::optional<std::int64_t>& pin,
                     const std::vector<Case>& cases, std::int64_t Dims::* dim) {
  const auto suits = [&](const Case& c) { return is_share_count(c.grains.*dim, *pin); };
  if (!pin || std::any_of(cases.begin(), cases.end(), suits)) return;
  const std::int64_t grains = cases.front().grains.*dim;
  throw_invalid(
      fmt::format("planConstraints.partition.{} is {}; {} grains cut into that many parts leave "
                  "parts empty, the nearest legal values are {}",
                  key, *pin, grains, nearest_counts(grains, *pin)));
}

// Returns the divisors of `grains` nearest to `pin` that are at most `most`, as text.
std::string nearest_divisors(std::int64_t grains, std::int64_t pin, std::int64_t most) {
  std::int64_t below = std::min(pin, grains), above = pin;
  while (grains % below != 0) --below;
  while (above <= std::min(grains, most) && grains % above != 0) ++above;
  if (above > std::min(grains, most)) return fmt::format("{}", below);
  return fmt::format("{} or {}", below, above);
}

void check_batch_pin(const std::vector<Case>& cases, const std::optional<std::int64_t>& pin) {
  if (!pin) return;
  for (const Case& c : cases)
    if (c.grains.z % *pin == 0) return;
  const Case& c = cases.front();
  throw_invalid(fmt::format(
      "planConstraints.partition.z is {}; it must divide the batch in grains, {} of {} columns; "
      "the nearest legal values are {}",
      *pin, c.grains.z, c.candidate.grain.z, nearest_divisors(c.grains.z, *pin, c.machine.tiles)));
}

// Limits the work so that each dense multiply-accumulate may cost 2^11 cycles or bytes before a sum
// overflows 64 bits.
void check_work(const Dims& size) {
  constexpr double kMost = 4503599627370496;  // 2^52
  const double work = static_cast<double>(size.g) * static_cast<double>(size.x) *
                      static_cast<double>(size.y) * static_cast<double>(size.z);
  if (work > kMost)
    throw_invalid(fmt::format(
        "layer {} has {:.4g} dense multiply-accumulates; g * x * y * z must be at most 2^52",
        to_string(size), work));
}

// Converts the errors of a bad machine to Error{InvalidArgument}, because the machine is an
// argument here and not a file.
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
  check_work(problem.size);
  check_options(options);
  check_machine(machine);
  if (options.poplibs_parity && problem.is_element_wise() &&
      problem.partials_type == DataType::Half)
    throw_invalid(
        "partials type is half with block 1x1 and popLibsParity; element-wise sparsity has float "
        "partials only in PopLibs. Use float, or leave popLibsParity out");
  if (problem.size.g > machine.tiles)
    throw_invalid(fmt::format("groups is {}; it must be in 1..{}, the tiles of {}", problem.size.g,
                              machine.tiles, machine.name));
  if (stats != nullptr) check_stats(problem, *stats);
}

void check_pins(const std::vector<Case>& cases) {
  const Case& c = cases.front();
  const PlanConstraints& pins = c.options.constraints;
  for (const auto& [key, pin] : {std::pair{"x", pins.x}, {"y", pins.y}, {"z", pins.z}})
    if (pin && (*pin < 1 || *pin > c.machine.tiles))
      throw_invalid(fmt::format("planConstraints.partition.{} is {}; it must be in 1..{}", key,
                                *pin, c.machine.tiles));
  // Each factor is at most 2^20, so the product of three cannot overflow.
  std::int64_t least_tiles = c.grains.g * pins.x.value_or(1) * pins.y.value_or(1);
  if (least_tiles <= c.machine.tiles) least_tiles *= pins.z.value_or(1);
  if (least_tiles > c.machine.tiles)
    throw_invalid(fmt::format("planConstraints.partition needs {} tiles; {} has {}", least_tiles,
                              c.machine.name, c.machine.tiles));
  check_share_pin("x", pins.x, cases, &Dims::x);
  check_share_pin("y", pins.y, cases, &Dims::y);
  if (c.parity()) return check_batch_pin(cases, pins.z);
  check_share_pin("z", pins.z, cases, &Dims::z);
}

}  // namespace tessera::planner::internal
