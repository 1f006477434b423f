#include "tessera/tests/planner/solver/harness.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <sstream>

#include "tessera/base/random.hpp"

namespace tessera::planner::solver::test {

namespace {

std::string show(const Box& box) {
  std::ostringstream out;
  for (const Interval d : box) out << "[" << d.lo << ", " << d.hi << "] ";
  return out.str();
}

std::string show(const Point& point) {
  std::ostringstream out;
  out << "(";
  for (std::size_t i = 0; i < point.size(); ++i) out << (i == 0 ? "" : ", ") << point[i];
  out << ")";
  return out.str();
}

bool inside(const Box& box, const Point& point) {
  for (std::size_t i = 0; i < box.size(); ++i)
    if (!box[i].contains(point[i])) return false;
  return true;
}

void expect_none(const std::optional<std::string>& fault) {
  if (fault) ADD_FAILURE() << *fault;
}

}  // namespace

Propagate make(Kind kind, int arguments, FunctionEntry function) {
  std::vector<int> places;
  for (int i = 0; i < arguments; ++i) places.push_back(i);
  return make_on(kind, places, arguments, std::move(function));
}

Propagate make_on(Kind kind, const std::vector<int>& arguments, int result,
                  FunctionEntry function) {
  struct Held {
    std::vector<VarId> arguments;
    FunctionEntry function;
    internal::CallScratch scratch;
  };
  const auto held = std::make_shared<Held>();
  for (const int a : arguments) held->arguments.push_back({a});
  held->function = std::move(function);
  held->scratch.values.resize(arguments.size());
  held->scratch.boxes.resize(arguments.size());
  return [held, kind, result](internal::Domains& dom) {
    return internal::propagate({kind, held->arguments, {result}, &held->function}, dom,
                               held->scratch);
  };
}

std::optional<Box> fixpoint(const Propagate& p, const Box& box) {
  internal::Domains dom(box);
  do {
    dom.clear_touched();
    if (!p(dom)) return std::nullopt;
  } while (!dom.touched().empty());
  return dom.all();
}

std::vector<Point> points_of(const Box& box) {
  std::vector<Point> points{{}};
  for (const Interval d : box) {
    std::vector<Point> longer;
    for (const Point& point : points)
      for (Value i = 0; i <= d.hi - d.lo; ++i) {
        longer.push_back(point);
        longer.back().push_back(d.lo + i);
      }
    points = std::move(longer);
  }
  return points;
}

std::vector<Box> all_boxes(std::size_t variables, Value most) {
  std::vector<Box> boxes{{}};
  for (std::size_t v = 0; v < variables; ++v) {
    std::vector<Box> longer;
    for (const Box& box : boxes)
      for (Value lo = 0; lo <= most; ++lo)
        for (Value hi = lo; hi <= most; ++hi) {
          longer.push_back(box);
          longer.back().push_back({lo, hi});
        }
    boxes = std::move(longer);
  }
  return boxes;
}

std::vector<Box> boxes_near(const Point& corner, Value widest, int count, std::uint64_t seed) {
  Random random(seed);
  std::vector<Box> boxes;
  for (int i = 0; i < count; ++i) {
    Box box;
    for (const Value at : corner) {
      const Value width = random.below(widest + 1);
      const Value below = std::min(at, random.below(widest + 1));
      const Value lo = at - below;
      box.push_back({lo, lo > kMaxValue - width ? kMaxValue : lo + width});
    }
    boxes.push_back(box);
  }
  return boxes;
}

std::optional<std::string> unsound(const Propagate& p, const Box& box, const Truth& truth) {
  const std::optional<Box> after = fixpoint(p, box);
  for (std::size_t i = 0; after && i < box.size(); ++i)
    if ((*after)[i].lo < box[i].lo || (*after)[i].hi > box[i].hi)
      return "grew " + show(box) + "to " + show(*after);
  for (const Point& point : points_of(box))
    if (truth(point) && (!after || !inside(*after, point)))
      return "lost " + show(point) + " from " + show(box) +
             (after ? "keeping " + show(*after) : "by failing");
  return std::nullopt;
}

std::optional<std::string> undecided(const Propagate& p, const Box& box, const Truth& truth) {
  for (const Point& point : points_of(box)) {
    Box alone;
    for (const Value v : point) alone.push_back({v, v});
    const bool kept = fixpoint(p, alone).has_value();
    if (kept != truth(point)) return (kept ? "accepted " : "refused ") + show(point);
  }
  return std::nullopt;
}

std::optional<std::string> not_hull(const Propagate& p, const Box& box, const Truth& truth,
                                    const std::vector<int>& variables) {
  std::optional<Box> hull;
  for (const Point& point : points_of(box)) {
    if (!truth(point)) continue;
    if (!hull) hull.emplace(box.size(), Interval{kMaxValue, 0});
    for (std::size_t i = 0; i < point.size(); ++i)
      (*hull)[i] = {std::min((*hull)[i].lo, point[i]), std::max((*hull)[i].hi, point[i])};
  }
  const std::optional<Box> after = fixpoint(p, box);
  if (!hull) return after ? std::optional("kept the empty " + show(box)) : std::nullopt;
  if (!after) return "failed on " + show(box);
  for (const int v : variables)
    if ((*after)[static_cast<std::size_t>(v)] != (*hull)[static_cast<std::size_t>(v)])
      return "from " + show(box) + "made " + show(*after) + "where the hull is " + show(*hull);
  return std::nullopt;
}

std::optional<std::string> not_settled(const Propagate& p, const Box& box) {
  internal::Domains dom(box);
  if (!p(dom)) return std::nullopt;
  dom.clear_touched();
  if (p(dom) && dom.touched().empty()) return std::nullopt;
  return "a second run on " + show(box) + "still changed something";
}

void expect_sound(const Propagate& p, const Box& box, const Truth& truth) {
  expect_none(unsound(p, box, truth));
}
void expect_decides(const Propagate& p, const Box& box, const Truth& truth) {
  expect_none(undecided(p, box, truth));
}
void expect_hull(const Propagate& p, const Box& box, const Truth& truth,
                 const std::vector<int>& variables) {
  expect_none(not_hull(p, box, truth, variables));
}
void expect_settles(const Propagate& p, const Box& box) { expect_none(not_settled(p, box)); }

}  // namespace tessera::planner::solver::test
