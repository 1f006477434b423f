#include "tessera/study/sweep_grid.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "tessera/base/error.hpp"
#include "tessera/json/value.hpp"

namespace tessera::study {
namespace {

using Json = json::Value;

constexpr const char* kLayerFigures[] = {"density", "block", "batch", "inputs", "outputs"};
constexpr std::int64_t kRangePoints = 6;  // of a range that does not say how many

// Short names of keys of the machine file.
constexpr std::pair<const char*, const char*> kShortNames[] = {
    {"memory", "tile_memory"}, {"exchange", "exchange_bytes_per_cycle"}};

[[noreturn]] void refuse_sweep(const std::string& message) { throw_invalid("sweep: " + message); }

bool is_fraction(const Json& value) { return std::holds_alternative<double>(value.data); }

// Returns the keys of a machine file that have a number, with the numbers of a gc200.
const Json& machine_keys() {
  static const Json keys = [] {
    const Json all = json::parse_own(device::machine_to_json(device::machine_preset("gc200")));
    json::Object numbers;
    for (const json::Member& member : std::get<json::Object>(all.data))
      if (is_fraction(member.value) || std::holds_alternative<std::int64_t>(member.value.data))
        numbers.push_back(member);
    return Json(std::move(numbers));
  }();
  return keys;
}

std::string full_name(const std::string& figure) {
  for (const auto& [name, key] : kShortNames)
    if (figure == name) return key;
  return figure;
}

bool is_of_layer(const std::string& figure) {
  return std::ranges::find(kLayerFigures, figure) != std::end(kLayerFigures);
}

double number_of(const std::string& text, const std::string& figure) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    refuse_sweep(
        fmt::format("\"{}\" is not a value of {}; write numbers as in density=0.01,0.1 "
                    "or ranges as in density=0.01:0.5:6",
                    text, figure));
  return value;
}

// Returns values that are even on a logarithmic scale, with three digits or whole.
std::vector<double> range_of(double from, double to, std::int64_t points, bool is_whole) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < points; ++i) {
    const double part = double(i) / double(points - 1);
    double value = from * std::pow(to / from, part);
    const double unit = is_whole ? 1 : std::pow(10, std::floor(std::log10(value)) - 2);
    value = i == 0 ? from : i + 1 == points ? to : std::round(value / unit) * unit;
    if (!is_whole)
      // 0.3, not 0.30000000000000004; std::stod refuses subnormal numbers.
      value = std::strtod(fmt::format("{:.12g}", value).c_str(), nullptr);
    if (values.empty() || value != values.back()) values.push_back(value);
  }
  return values;
}

void add_values(const std::string& text, SweepAxis& axis) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at != std::string::npos;) {
    const std::size_t colon = text.find(':', at);
    parts.push_back(text.substr(at, colon == std::string::npos ? colon : colon - at));
    at = colon == std::string::npos ? colon : colon + 1;
  }
  if (parts.size() == 1) return axis.values.push_back(number_of(text, axis.figure));
  const double from = number_of(parts[0], axis.figure), to = number_of(parts[1], axis.figure);
  const double points = parts.size() == 3 ? number_of(parts[2], axis.figure) : double(kRangePoints);
  if (parts.size() > 3 || from <= 0 || to <= from || points < 2 || points > double(kMostPoints) ||
      points != std::floor(points))
    refuse_sweep(
        fmt::format("\"{}\" is not a range FROM:TO or FROM:TO:POINTS with 0 < FROM < TO "
                    "and 2..{} points",
                    text, kMostPoints));
  for (const double value : range_of(from, to, std::int64_t(points), axis.figure != "density"))
    axis.values.push_back(value);
}

std::int64_t whole(const std::string& figure, double value, std::int64_t least, std::int64_t most) {
  if (value >= double(least) && value <= double(most) && value == std::floor(value))
    return std::int64_t(value);
  refuse_sweep(
      fmt::format("{} is {}; it must be a whole number in {}..{}", figure, value, least, most));
}

void set_layer_figure(const std::string& figure, double value, Problem& problem) {
  if (figure == "density") {
    if (!(value >= 0 && value <= 1))
      refuse_sweep(fmt::format("density is {}; it must be in 0..1", value));
    problem.density = value;
    return;
  }
  const std::int64_t n = whole(figure, value, 1, kLargestSize);
  if (figure == "block") problem.block = {n, n};
  if (figure == "batch") problem.size.z = n;
  if (figure == "inputs") problem.size.y = n;
  if (figure == "outputs") problem.size.x = n;
}

std::string checked_name(const std::string& figure, const std::vector<SweepAxis>& before) {
  std::string name = full_name(figure);
  if (!is_of_layer(name) && !is_of_machine(name))
    refuse_sweep(fmt::format("there is no figure \"{}\"; figures are {}", figure, figure_names()));
  if (axis_of(before, name) != nullptr) refuse_sweep(name + " is given twice");
  return name;
}

void check_points(const std::vector<SweepAxis>& axes) {
  std::int64_t points = 1;
  for (const SweepAxis& axis : axes) {
    if (axis.values.empty())
      refuse_sweep(axis.figure + " has no values; give some, as in " + axis.figure + "=1,2");
    points = std::min(points * std::ssize(axis.values), kMostPoints + 1);
  }
  if (points > kMostPoints)
    refuse_sweep(fmt::format("the grid has more than {} points", kMostPoints));
}

}  // namespace

const SweepAxis* axis_of(const std::vector<SweepAxis>& axes, std::string_view figure) {
  const auto found = std::ranges::find(axes, figure, &SweepAxis::figure);
  return found == axes.end() ? nullptr : &*found;
}

void check_axes(std::vector<SweepAxis>& axes) {
  std::vector<SweepAxis> checked;
  for (const SweepAxis& axis : axes)
    checked.push_back({checked_name(axis.figure, checked), axis.values});
  if (checked.empty()) refuse_sweep("there is no figure; figures are " + figure_names());
  check_points(checked);
  axes = std::move(checked);
}

std::vector<SweepAxis> parse_axes(const std::string& text, const std::vector<double>& values) {
  std::vector<SweepAxis> axes;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    std::string word = text.substr(at, comma - at);
    at = comma + 1;
    const std::size_t equals = word.find('=');
    const bool is_name = equals != std::string::npos || axes.empty();
    if (is_name) {
      axes.push_back({checked_name(word.substr(0, equals), axes), {}});
      if (equals == std::string::npos) continue;
      word = word.substr(equals + 1);
    }
    add_values(word, axes.back());
  }
  const bool takes_values = axes.size() == 1 && axes.front().values.empty();
  if (takes_values) axes.front().values = values;
  if (!takes_values && !values.empty())
    refuse_sweep("values beside the figures are for one figure without values; omit them");
  check_points(axes);
  return axes;
}

bool is_of_machine(const std::string& figure) {
  return json::find(machine_keys(), full_name(figure)) != nullptr;
}

std::string figure_names() {
  std::vector<std::string> names(std::begin(kLayerFigures), std::end(kLayerFigures));
  for (const json::Member& member : std::get<json::Object>(machine_keys().data))
    names.push_back(member.key);
  for (const auto& [name, key] : kShortNames) names.push_back(name);
  return fmt::format("{}", fmt::join(names, ", "));
}

void set_figure(const std::string& figure, double value, SweepPoint& point) {
  if (is_of_layer(figure)) return set_layer_figure(figure, value, point.problem);
  Json machine = json::parse_own(device::machine_to_json(point.machine));
  Json& member = machine[full_name(figure)];
  member = is_fraction(member) ? Json(value) : Json(whole(figure, value, 0, 1'000'000'000'000));
  try {
    point.machine = device::machine_from_json(machine.dump(), "sweep");
  } catch (const Error& error) {
    throw Error(ErrorCode::InvalidArgument, error.what());
  }
}

std::vector<std::vector<double>> grid_of(const std::vector<SweepAxis>& axes) {
  std::vector<std::vector<double>> grid = {{}};
  for (const SweepAxis& axis : axes) {
    std::vector<std::vector<double>> finer;
    for (const auto& point : grid)
      for (const double value : axis.values) {
        finer.push_back(point);
        finer.back().push_back(value);
      }
    grid = std::move(finer);
  }
  return grid;
}

}  // namespace tessera::study
