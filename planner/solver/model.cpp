#include "tessera/planner/solver/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tessera/base/error.hpp"
#include "tessera/planner/solver/internal/priority_order.hpp"

namespace tessera::planner::solver {

namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::InvalidArgument, message);
}

}  // namespace

VarId Model::variable(Value lo, Value hi) {
  if (lo < 0 || lo > hi)
    refuse(fmt::format("solver variable: domain [{}, {}] is not within 0 <= lo <= hi <= {}", lo, hi,
                       kMaxValue));
  if (domains_.size() >= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    throw Error(ErrorCode::LimitExceeded, "solver model: more than 2^31 - 1 variables");
  domains_.push_back({lo, hi});
  groups_.push_back(default_group());
  return {static_cast<std::int32_t>(domains_.size() - 1)};
}

VarId Model::constant(Value v) {
  const auto found = constants_.find(v);
  if (found != constants_.end()) return found->second;
  const VarId made = variable(v, v);
  constants_.emplace(v, made);
  return made;
}

void Model::set_name(VarId v, std::string name) {
  check(v);
  names_[v] = std::move(name);
}

std::string Model::name(VarId v) const {
  check(v);
  const auto found = names_.find(v);
  return found != names_.end() ? found->second : fmt::format("v{}", v.value);
}

void Model::check(VarId v) const {
  if (v.value < 0 || static_cast<std::size_t>(v.value) >= domains_.size())
    refuse(fmt::format("solver model: variable {} is not one of its {} variables", v.value,
                       domains_.size()));
}

void Model::check(GroupId group) const {
  if (group.value < 0 || static_cast<std::size_t>(group.value) >= group_names_.size())
    refuse(fmt::format("solver model: priority group {} is not one of its {} groups", group.value,
                       group_names_.size()));
}

void Model::add(Kind kind, std::span<const VarId> arguments, VarId result, int function) {
  constraints_.push_back({kind, static_cast<std::int32_t>(arguments_.size()),
                          static_cast<std::int32_t>(arguments.size()), result, function});
  arguments_.insert(arguments_.end(), arguments.begin(), arguments.end());
}

void Model::relate(Kind kind, VarId a, VarId b) {
  check(a);
  check(b);
  add(kind, std::array{a, b});
}

VarId Model::result_of(Kind kind, std::span<const VarId> arguments, Interval domain) {
  for (const VarId a : arguments) check(a);
  const VarId result = variable(domain.lo, domain.hi);
  add(kind, arguments, result);
  return result;
}

VarId Model::product(VarId a, VarId b) { return result_of(Kind::Product, std::array{a, b}); }
VarId Model::product(const std::vector<VarId>& factors) {
  if (factors.empty()) return constant(1);
  if (factors.size() == 1) return check(factors[0]), factors[0];
  return result_of(Kind::Product, factors);
}
VarId Model::sum(VarId a, VarId b) { return result_of(Kind::Sum, std::array{a, b}); }
VarId Model::sum(const std::vector<VarId>& terms) {
  if (terms.empty()) return constant(0);
  if (terms.size() == 1) return check(terms[0]), terms[0];
  return result_of(Kind::Sum, terms);
}

VarId Model::sub(VarId a, VarId b) {
  check(a);
  check(b);
  const VarId difference = variable();
  add(Kind::Sum, std::array{difference, b}, a);
  return difference;
}

VarId Model::max(VarId a, VarId b) { return result_of(Kind::Max, std::array{a, b}); }
VarId Model::max(const std::vector<VarId>& of) {
  if (of.empty()) refuse("solver model: max of no variables; give at least one");
  if (of.size() == 1) return check(of[0]), of[0];
  return result_of(Kind::Max, of);
}
VarId Model::min(VarId a, VarId b) { return result_of(Kind::Min, std::array{a, b}); }
VarId Model::min(const std::vector<VarId>& of) {
  if (of.empty()) refuse("solver model: min of no variables; give at least one");
  if (of.size() == 1) return check(of[0]), of[0];
  return result_of(Kind::Min, of);
}

VarId Model::ceil_div(VarId n, VarId d) { return result_of(Kind::CeilDiv, std::array{n, d}); }
VarId Model::floor_div(VarId n, VarId d) { return result_of(Kind::FloorDiv, std::array{n, d}); }
VarId Model::mod(VarId n, VarId d) { return result_of(Kind::Mod, std::array{n, d}); }
VarId Model::ceil_div_minimal_divisor(VarId n, VarId d) {
  return result_of(Kind::CeilDivMinimalDivisor, std::array{n, d});
}

void Model::factor_of(VarId a, VarId b) { relate(Kind::FactorOf, a, b); }
void Model::less(VarId a, VarId b) { relate(Kind::Less, a, b); }
void Model::less_or_equal(VarId a, VarId b) { relate(Kind::LessOrEqual, a, b); }
void Model::equal(VarId a, VarId b) { relate(Kind::Equal, a, b); }

VarId Model::reified_less(VarId a, VarId b) {
  return result_of(Kind::ReifiedLess, std::array{a, b}, {0, 1});
}
VarId Model::reified_less_or_equal(VarId a, VarId b) {
  return result_of(Kind::ReifiedLessOrEqual, std::array{a, b}, {0, 1});
}
VarId Model::reified_equal(VarId a, VarId b) {
  return result_of(Kind::ReifiedEqual, std::array{a, b}, {0, 1});
}
VarId Model::logical_or(VarId a, VarId b) { return result_of(Kind::Or, std::array{a, b}, {0, 1}); }
VarId Model::logical_and(VarId a, VarId b) {
  return result_of(Kind::And, std::array{a, b}, {0, 1});
}
VarId Model::logical_not(VarId a) { return result_of(Kind::Not, std::array{a}, {0, 1}); }

VarId Model::call_entry(const std::vector<VarId>& arguments, FunctionEntry entry) {
  for (const VarId a : arguments) check(a);
  if (!entry.exact) refuse("solver call: the function is empty");
  const VarId result = variable();
  functions_.push_back(std::move(entry));
  add(Kind::Call, arguments, result, static_cast<int>(functions_.size() - 1));
  return result;
}

VarId Model::call(const std::vector<VarId>& arguments, Function function) {
  return call_entry(arguments, {std::move(function), {}});
}

VarId Model::call_bounded(const std::vector<VarId>& arguments, Function function,
                          LowerBound lower) {
  if (!lower) refuse("solver call: the lower bound is empty; use call() without one");
  return call_entry(arguments, {std::move(function), std::move(lower)});
}

GroupId Model::add_priority_group(std::string name) {
  group_names_.push_back(std::move(name));
  return {static_cast<std::int32_t>(group_names_.size() - 1)};
}

void Model::set_priority(VarId v, GroupId group) {
  check(v);
  check(group);
  groups_[static_cast<std::size_t>(v.value)] = group;
}

void Model::prioritise(GroupId first, GroupId later) {
  check(first);
  check(later);
  priorities_.emplace_back(first, later);
}

GroupId Model::group(VarId v) const {
  check(v);
  return groups_[static_cast<std::size_t>(v.value)];
}

std::string Model::group_name(GroupId group) const {
  check(group);
  const std::string& given = group_names_[static_cast<std::size_t>(group.value)];
  return given.empty() ? fmt::format("group {}", group.value) : given;
}

std::vector<std::int32_t> Model::group_ranks() const {
  const internal::PriorityOrder order = internal::order_groups(group_names_.size(), priorities_);
  if (order.circle.empty()) return order.rank;
  std::string names;
  for (const GroupId group : order.circle)
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", group_name(group));
  refuse(
      fmt::format("solver priorities: the groups {} must each come before the next, in a "
                  "circle; remove one prioritise() among them",
                  names));
}

std::vector<VarId> Model::branching_order() const {
  const std::vector<std::int32_t> rank = group_ranks();
  std::vector<VarId> order;
  for (std::size_t v = 0; v < domains_.size(); ++v)
    if (!domains_[v].assigned()) order.push_back({static_cast<std::int32_t>(v)});
  const auto rank_of = [&](VarId v) { return rank[static_cast<std::size_t>(group(v).value)]; };
  std::sort(order.begin(), order.end(), [&](VarId a, VarId b) {
    return rank_of(a) != rank_of(b) ? rank_of(a) < rank_of(b) : a < b;
  });
  return order;
}

}  // namespace tessera::planner::solver
