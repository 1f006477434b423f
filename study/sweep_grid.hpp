#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/problem.hpp"
#include "tessera/device/machine.hpp"

namespace tessera::study {

// A figure that a sweep varies, and its values.
struct SweepAxis {
  std::string figure;
  std::vector<double> values;
};

// A layer on a machine.
struct SweepPoint {
  Problem problem;
  device::Machine machine;
};

// The most points of a grid.
inline constexpr std::int64_t kMostPoints = 10'000;

// Reads axes, for example "density=0.01:0.5,block=1,4,8,16". Values are single numbers or ranges
// FROM:TO:POINTS, which are even on a logarithmic scale; POINTS may be left out. A single name
// without values takes `values`, those of --values. Throws Error{InvalidArgument} for an unknown
// or repeated figure, a missing or malformed value, and too many points.
std::vector<SweepAxis> parse_axes(const std::string& text, const std::vector<double>& values);

// Completes the names of figures and checks axes that a program has made. Throws the same errors.
void check_axes(std::vector<SweepAxis>& axes);

// Returns the axis of a figure, or nullptr if it does not vary.
const SweepAxis* axis_of(const std::vector<SweepAxis>& axes, std::string_view figure);

// Returns true if the figure belongs to the machine and not to the layer.
bool is_of_machine(const std::string& figure);

// Returns the names of all figures, separated by commas.
std::string figure_names();

// Sets one figure: one of the layer (density, batch, block, inputs, outputs) or a key of the
// machine file. Throws Error{InvalidArgument} for a value that is not legal.
void set_figure(const std::string& figure, double value, SweepPoint& point);

// Returns all points of the grid in order; the last axis varies fastest.
std::vector<std::vector<double>> grid_of(const std::vector<SweepAxis>& axes);

}  // namespace tessera::study
