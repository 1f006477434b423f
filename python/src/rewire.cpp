#include "tessera/python/src/rewire.hpp"

#include <fmt/format.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/named.hpp"
#include "tessera/python/src/csr.hpp"
#include "tessera/python/src/tensor.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/train/rewire/density.hpp"
#include "tessera/train/rewire/neurons.hpp"
#include "tessera/train/rewire/rows.hpp"
#include "tessera/train/rewire/schedule.hpp"

namespace py = pybind11;
using py::literals::operator""_a;

namespace tessera::python {
namespace {

// Returns the density of a step of a schedule, which is checked with the rewires.
double scheduled_density(std::int64_t step, double first, double last, std::int64_t begin,
                         std::int64_t end, const std::string& curve, std::int64_t first_rewire,
                         std::int64_t last_rewire, std::int64_t every) {
  const train::DensitySchedule schedule{first, last, begin, end,
                                        named(curve, train::kDensityCurves, "curve")};
  check(schedule, {.begin = first_rewire, .end = last_rewire, .every = every});
  return schedule.at(step);
}

train::RewireSchedule schedule_of(double fraction, std::int64_t begin, std::int64_t end,
                                  std::int64_t every) {
  const train::RewireSchedule schedule = {
      .fraction = fraction, .begin = begin, .end = end, .every = every};
  check(schedule);
  return schedule;
}

double rewire_fraction(std::int64_t step, double fraction, std::int64_t begin, std::int64_t end,
                       std::int64_t every) {
  return schedule_of(fraction, begin, end, every).at(step);
}

// Returns a random pattern; of min_per_neuron and constant_fan_in one at most.
py::tuple random_pattern(std::int64_t rows, std::int64_t cols, std::int64_t block_rows,
                         std::int64_t block_cols, double density, std::uint64_t seed,
                         std::int64_t min_per_neuron, bool constant_fan_in) {
  const BlockShape block{block_rows, block_cols};
  sparse::Csr<float> pattern = sparse::random_pattern(rows, cols, block, density, seed);
  if (constant_fan_in && min_per_neuron != 0)
    throw Error(ErrorCode::InvalidArgument, "give min_per_neuron or constant_fan_in, not both");
  if (min_per_neuron != 0) pattern = train::with_least_per_neuron(pattern, min_per_neuron, seed);
  if (constant_fan_in) pattern = train::random_even_rows(rows, cols, block, pattern.blocks(), seed);
  return arrays_from_csr(pattern);
}

// Returns the densities of layers of these sizes (rows, columns) by Erdos and Renyi's rule.
std::vector<double> erdos_renyi(const std::vector<std::pair<std::int64_t, std::int64_t>>& sizes,
                                std::pair<std::int64_t, std::int64_t> block, double density) {
  std::vector<train::LayerSize> layers;
  for (const auto& [rows, cols] : sizes)
    layers.push_back({rows, cols, {block.first, block.second}});
  return train::erdos_renyi_densities(layers, density);
}

// Returns the numbers of blocks of `area` after a rewire: those of block origin[i], or 0 where it
// is negative.
py::array carried(const py::array_t<std::int64_t, py::array::c_style>& origin,
                  const py::object& numbers, std::int64_t count, std::int64_t area) {
  const Tensor from(numbers, "numbers", DataType::Float, Access::Read);
  const float* const before = from.values(count);
  const std::span<const std::int64_t> blocks(origin.data(), std::size_t(origin.size()));
  for (const std::int64_t block : blocks)
    if (block >= count / area)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("origin is {}; there are {} blocks", block, count / area));
  py::array result = new_array(DataType::Float, {std::ssize(blocks) * area});
  auto* to = static_cast<float*>(result.mutable_data());
  if (count == 0) std::fill_n(to, result.size(), 0.0f);
  // New blocks are anywhere, so they are not told apart by a branch: an old number is read for
  // each.
  const std::size_t stored = count > 0 ? blocks.size() : 0;
  for (std::size_t b = 0; area == 1 && b < stored; ++b) {
    const float old = before[std::max<std::int64_t>(blocks[b], 0)];
    to[b] = blocks[b] < 0 ? 0.0f : old;
  }
  for (std::size_t b = 0; area > 1 && b < stored; ++b)
    for (std::int64_t i = 0; i < area; ++i) {
      const float old = before[std::max<std::int64_t>(blocks[b], 0) * area + i];
      *to++ = blocks[b] < 0 ? 0.0f : old;
    }
  return result;
}

}  // namespace

std::optional<train::Optimiser> optimiser_of(const std::string& rule,
                                             const std::vector<double>& numbers) {
  const auto has = [&](const char* name, std::size_t count) {
    return rule == name && numbers.size() == count;
  };
  if (rule.empty()) return std::nullopt;
  train::Optimiser made;
  if (has("adam", 5)) {
    made = {.rule = train::Adam{numbers[0], numbers[1], numbers[2], numbers[3]},
            .weight_decay = numbers[4]};
  } else if (has("adamw", 5)) {
    made.rule = train::AdamW{numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
  } else if (has("sgd", 3)) {
    made.weight_decay = numbers[2];
    if (numbers[1] == 0)
      made.rule = train::Sgd{numbers[0]};
    else
      made.rule = train::TorchSgd{numbers[0], numbers[1]};
  } else {
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("rule is \"{}\" with {} numbers; it is adam, adamw or sgd", rule,
                            numbers.size()));
  }
  return made;
}

void add_rewire(py::module_& module) {
  module.def(
      "_check_method",
      [](const std::string& method, const std::string& pool, const std::string& exclude,
         std::optional<double> factor, const std::string& search) {
        check(train::parse_method(method, {pool, exclude, search, factor}));
      },
      "method"_a, "pool"_a, "exclude"_a, "factor"_a, "search"_a);
  module.def("_scheduled_density", &scheduled_density, "step"_a, "first"_a, "last"_a, "begin"_a,
             "end"_a, "curve"_a, "first_rewire"_a, "last_rewire"_a, "every"_a);
  module.def("_erdos_renyi", &erdos_renyi, "sizes"_a, "block"_a, "density"_a);
  module.def("_carried", &carried, "origin"_a, "numbers"_a, "count"_a, "area"_a);
  module.def("_rewire_fraction", &rewire_fraction, "step"_a, "fraction"_a, "begin"_a, "end"_a,
             "every"_a);
  module.def("_random_pattern", &random_pattern, "rows"_a, "cols"_a, "block_rows"_a, "block_cols"_a,
             "density"_a, "seed"_a, "min_per_neuron"_a = 0, "constant_fan_in"_a = false);
}

}  // namespace tessera::python
