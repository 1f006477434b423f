#include "tessera/planner/solver/checker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace tessera::planner::solver {

namespace {

__extension__ using Exact = __int128;

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::Product:
      return "product";
    case Kind::Sum:
      return "sum";
    case Kind::Max:
      return "max";
    case Kind::Min:
      return "min";
    case Kind::CeilDiv:
      return "ceil_div";
    case Kind::CeilDivMinimalDivisor:
      return "ceil_div_minimal_divisor";
    case Kind::FloorDiv:
      return "floor_div";
    case Kind::Mod:
      return "mod";
    case Kind::FactorOf:
      return "factor_of";
    case Kind::Less:
      return "less";
    case Kind::LessOrEqual:
      return "less_or_equal";
    case Kind::Equal:
      return "equal";
    case Kind::ReifiedLess:
      return "reified_less";
    case Kind::ReifiedLessOrEqual:
      return "reified_less_or_equal";
    case Kind::ReifiedEqual:
      return "reified_equal";
    case Kind::Or:
      return "logical_or";
    case Kind::And:
      return "logical_and";
    case Kind::Not:
      return "logical_not";
    case Kind::Call:
      return "call";
  }
  return "unknown";
}

// Returns true if r is the product. Stops before a product could exceed 128 bits.
bool is_product(const std::vector<Value>& a, Value r) {
  if (std::find(a.begin(), a.end(), 0) != a.end()) return r == 0;
  Exact product = 1;
  for (const Value v : a) {
    product *= v;
    if (product > r) return false;  // no factor is 0, so the product cannot shrink again
  }
  return product == r;
}

bool is_sum(const std::vector<Value>& a, Value r) {
  Exact sum = 0;
  for (const Value v : a) sum += v;
  return sum == r;
}

Exact rounded_up(Value n, Value d) { return (Exact{n} + d - 1) / d; }

bool is_minimal_divisor(Value n, Value d, Value q) {
  if (d == 0 || rounded_up(n, d) != q) return false;
  return d == 1 || rounded_up(n, d - 1) != q;
}

bool is_call(const FunctionEntry& function, const std::vector<Value>& a, Value r) {
  const std::optional<Value> value = function.exact(a);
  return value && *value == r;
}

}  // namespace

bool holds(const Model& model, const Constraint& constraint, std::span<const Value> values) {
  std::vector<Value> a;
  for (const VarId v : model.arguments(constraint))
    a.push_back(values[static_cast<std::size_t>(v.value)]);
  const Value r =
      constraint.result.value < 0 ? 0 : values[static_cast<std::size_t>(constraint.result.value)];
  switch (constraint.kind) {
    case Kind::Product:
      return is_product(a, r);
    case Kind::Sum:
      return is_sum(a, r);
    case Kind::Max:
      return r == *std::max_element(a.begin(), a.end());
    case Kind::Min:
      return r == *std::min_element(a.begin(), a.end());
    case Kind::CeilDiv:
      return a[1] != 0 && r == rounded_up(a[0], a[1]);
    case Kind::CeilDivMinimalDivisor:
      return is_minimal_divisor(a[0], a[1], r);
    case Kind::FloorDiv:
      return a[1] != 0 && r == a[0] / a[1];
    case Kind::Mod:
      return a[1] != 0 && r == a[0] % a[1];
    case Kind::FactorOf:
      return a[1] != 0 && a[0] % a[1] == 0;
    case Kind::Less:
      return a[0] < a[1];
    case Kind::LessOrEqual:
      return a[0] <= a[1];
    case Kind::Equal:
      return a[0] == a[1];
    case Kind::ReifiedLess:
      return r == (a[0] < a[1]);
    case Kind::ReifiedLessOrEqual:
      return r == (a[0] <= a[1]);
    case Kind::ReifiedEqual:
      return r == (a[0] == a[1]);
    case Kind::Or:
      return r == (a[0] != 0 || a[1] != 0);
    case Kind::And:
      return r == (a[0] != 0 && a[1] != 0);
    case Kind::Not:
      return r == (a[0] == 0);
    case Kind::Call:
      return is_call(model.function(constraint), a, r);
  }
  return false;
}

std::optional<std::string> first_violation(const Model& model, std::span<const Value> values) {
  if (values.size() != model.variable_count())
    return fmt::format("{} values for {} variables", values.size(), model.variable_count());
  const auto shown = [&](VarId v) {
    return fmt::format("{} = {}", model.name(v), values[static_cast<std::size_t>(v.value)]);
  };
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Interval d = model.domains()[i];
    if (!d.contains(values[i]))
      return fmt::format("{} is not in [{}, {}]", shown({static_cast<std::int32_t>(i)}), d.lo,
                         d.hi);
  }
  for (std::size_t i = 0; i < model.constraints().size(); ++i) {
    const Constraint& c = model.constraints()[i];
    if (holds(model, c, values)) continue;
    std::string text = fmt::format("constraint {}, {}, does not hold:", i, name_of(c.kind));
    for (const VarId v : model.arguments(c)) text += fmt::format(" {}", shown(v));
    if (c.result.value >= 0) text += fmt::format(", result {}", shown(c.result));
    return text;
  }
  return std::nullopt;
}

}  // namespace tessera::planner::solver
