#include "tessera/bench/published/crossings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "tessera/bench/published/published_dense.hpp"

namespace tessera::bench {
namespace {

constexpr std::int64_t kSide = 4096;

// Returns the dense rate of the batch that is planned best.
double planned_dense_rate(DataType type, std::int64_t side, const Repetition& how) {
  std::vector<DensePoint> points;
  for (const std::int64_t batch : how.batches) points.push_back({type, side, batch, 1});
  double best = 0;
  for (const PlannedDense& planned : plan_points(points, how.machine))
    best = std::max(best, planned.teraflops);
  return best;
}

// One line of the second table: the crossings of one type and block.
struct CrossingPair {
  Crossing published, ours;
};

std::string words_of(const Crossing& c) {
  if (c.at) return fmt::format("{:.3f}", *c.at);
  return c.above > 0 ? fmt::format("above {:.3f}", c.above) : fmt::format("below {:.3f}", c.below);
}

// Returns the error of our crossing or, if only bounds are published, whether it obeys them.
std::string error_of(const CrossingPair& pair) {
  const auto& [published, ours] = pair;
  if (published.at && ours.at)
    return fmt::format("{:+.1f} %", 100 * (*ours.at / *published.at - 1));
  const double low = ours.at.value_or(ours.above), high = ours.at.value_or(ours.below);
  if (high <= published.below && low >= published.above) return "agrees";
  return high <= published.above || low >= published.below ? "disagrees" : "open";
}

using Group = std::tuple<DataType, std::int64_t>;  // type and side of the block

std::map<Group, CrossingPair> crossings_of(std::vector<SpeedUp> ratios) {
  std::ranges::sort(ratios, {}, &SpeedUp::density);
  std::map<Group, std::vector<std::pair<double, double>>> published, ours;
  for (const SpeedUp& r : ratios) {
    const Group group{r.type, r.block.rows};
    if (r.published) published[group].emplace_back(r.density, *r.published);
    if (r.ours) ours[group].emplace_back(r.density, *r.ours);
  }
  std::map<Group, CrossingPair> result;
  for (const auto& [group, known] : published)
    result[group] = {crossing_of(known), crossing_of(ours[group])};
  return result;
}

std::string line_of(const SpeedUp& r) {
  const auto ratio = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.2f}", *value) : std::string("-");
  };
  std::string error = "-";
  if (r.published && r.ours) error = fmt::format("{:+.1f} %", 100 * (*r.ours / *r.published - 1));
  return fmt::format("{:<6}{:>6}{:>10.5f}{:>14}{:>14}{:>12}\n", to_string(r.type),
                     fmt::format("{0}x{0}", r.block.rows), r.density, ratio(r.published),
                     ratio(r.ours), error);
}

// Returns the dense rates that the ratios refer to, because their errors are part of all errors.
std::string dense_text(const Repetition& how) {
  std::string text;
  for (const DataType type : {DataType::Half, DataType::Float}) {
    const double published = published_dense_rate(type);
    const double ours = planned_dense_rate(type, kSide, how);
    text += fmt::format("dense {:<6} {:.1f} TFLOP/s published, {:.1f} ours, {:+.1f} %\n",
                        to_string(type), published, ours, 100 * (ours / published - 1));
  }
  return text;
}

}  // namespace

Crossing crossing_of(const std::vector<std::pair<double, double>>& ratios) {
  Crossing result;
  const auto* paying = static_cast<const std::pair<double, double>*>(nullptr);
  for (const auto& point : ratios) {
    const auto [density, ratio] = point;
    if (ratio > 1) {
      paying = &point;
      result.above = density;
      continue;
    }
    result.below = density;
    if (paying == nullptr) break;
    const double share = std::log(paying->second) / std::log(paying->second / ratio);
    result.at = paying->first * std::pow(density / paying->first, share);
    break;
  }
  return result;
}

std::vector<PublishedPoint> crossing_points() {
  std::vector<PublishedPoint> points = published_points();
  std::erase_if(points, [](const PublishedPoint& p) { return p.side != kSide; });
  const auto add = [&](std::int64_t block, DataType type, std::initializer_list<double> densities) {
    for (const double density : densities)
      points.push_back({kSide, {block, block}, density, 0, type});
  };
  add(16, DataType::Half, {1.0 / 2});
  for (const std::int64_t block : {4, 8}) add(block, DataType::Half, {1.0 / 32, 1.0 / 8, 1.0 / 4});
  add(1, DataType::Half, {1.0 / 128, 1.0 / 64});
  add(1, DataType::Float, {1.0 / 8});
  return points;
}

double published_dense_rate(DataType type) { return type == DataType::Half ? 228 : 59.3; }

std::vector<SpeedUp> speed_ups(const std::vector<PublishedPoint>& points, const Repetition& how,
                               Executor& executor) {
  std::vector<SpeedUp> ratios;
  for (const PublishedPoint& p : points) {
    SpeedUp ratio{.type = p.type, .block = p.block, .density = p.density};
    if (p.teraflops > 0) ratio.published = p.teraflops / p.density / published_dense_rate(p.type);
    const double dense = planned_dense_rate(p.type, p.side, how);
    if (const Repeated run = repeat(p, how, executor); run.fits() && dense > 0)
      ratio.ours = run.measured->teraflops / p.density / dense;
    ratios.push_back(ratio);
  }
  std::ranges::sort(ratios, {}, [](const SpeedUp& r) {
    return std::tuple(r.type != DataType::Half, -r.block.rows, r.density);
  });
  return ratios;
}

std::string to_text(const std::vector<SpeedUp>& ratios, const Repetition& how) {
  std::string text = fmt::format(
      "speed of sparse over dense on {} at {:.3g} GHz, m = k = {}, each with its best batch "
      "of\n{};\n"
      "dynamic products of the pattern that was measured\n\n{}\n"
      "type   block   density     published          ours       error\n",
      how.machine.name, how.machine.clock_hz / 1e9, kSide, fmt::join(how.batches, " "),
      dense_text(how));
  std::vector<double> errors;
  for (const SpeedUp& r : ratios) {
    text += line_of(r);
    if (r.published) errors.push_back(r.ours ? *r.ours / *r.published - 1 : 1);
  }
  text +=
      "\ndensity up to which sparse pays, between the densities above\n"
      "type   block               published          ours       error\n";
  for (const auto& [group, pair] : crossings_of(ratios))
    text += fmt::format("{:<6}{:>6}{:>24}{:>14}{:>12}\n", to_string(std::get<0>(group)),
                        fmt::format("{0}x{0}", std::get<1>(group)), words_of(pair.published),
                        words_of(pair.ours), error_of(pair));
  const ErrorSummary summary = summary_of(errors);
  return text + fmt::format("\nerror of the ratios: median {:.1f} %, worst {:.1f} % of {}\n",
                            100 * summary.median, 100 * summary.worst, errors.size());
}

}  // namespace tessera::bench
