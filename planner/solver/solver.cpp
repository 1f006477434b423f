#include "tessera/planner/solver/solver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "tessera/base/error.hpp"
#include "tessera/planner/solver/checker.hpp"
#include "tessera/planner/solver/internal/search.hpp"

namespace tessera::planner::solver {

namespace {

void check_request(const Model& model, const std::vector<Objective>& objectives,
                   const SearchLimits& limits) {
  for (const Objective& o : objectives)
    if (o.variable.value < 0 ||
        static_cast<std::size_t>(o.variable.value) >= model.variable_count())
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("solver: objective {} is not one of the model's {} variables",
                              o.variable.value, model.variable_count()));
  if (limits.max_nodes < 0 || limits.max_evaluations < 0)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("solver: limits of {} nodes and {} evaluations; both must be >= 0",
                            limits.max_nodes, limits.max_evaluations));
  if (limits.solutions < 1)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("solver: {} solutions asked for; at least 1", limits.solutions));
}

// Checks a solution with code that shares nothing with the search.
void check_solution(const Model& model, const std::vector<Value>& values) {
  const auto broken = std::find_if(model.constraints().begin(), model.constraints().end(),
                                   [&](const Constraint& c) { return !holds(model, c, values); });
  if (broken == model.constraints().end()) return;
  if (broken->kind == Kind::Call)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("solver: a function is not pure, or its declared directions or lower "
                            "bound are false: {}",
                            *first_violation(model, values)));
  throw Error(ErrorCode::Internal,
              fmt::format("solver: wrong answer: {}", *first_violation(model, values)));
}

void check_answer(const Model& model, const Result& result) {
  if (!result.has_solution()) return;
  check_solution(model, result.values);
  for (const Solution& solution : result.next) check_solution(model, solution.values);
}

}  // namespace

std::string to_string(Status status) {
  switch (status) {
    case Status::Optimal:
      return "optimal";
    case Status::Feasible:
      return "feasible";
    case Status::Infeasible:
      return "infeasible";
    case Status::LimitReached:
      return "limit reached";
    case Status::Cancelled:
      return "cancelled";
  }
  return "unknown";
}

std::ostream& operator<<(std::ostream& out, Status status) { return out << to_string(status); }

struct Solver::State {
  explicit State(const Model& m) : model(m), search(m) {}
  const Model& model;
  internal::Search search;
};

Solver::Solver(const Model& model) : state_(std::make_unique<State>(model)) {}
Solver::~Solver() = default;
Solver::Solver(Solver&&) noexcept = default;
Solver& Solver::operator=(Solver&&) noexcept = default;

Result Solver::minimise(const std::vector<Objective>& objectives, const SearchLimits& limits,
                        const Callbacks& callbacks) {
  check_request(state_->model, objectives, limits);
  Result result = state_->search.run(objectives, limits, callbacks);
  check_answer(state_->model, result);
  return result;
}

Result minimise(const Model& model, const std::vector<Objective>& objectives,
                const SearchLimits& limits, const Callbacks& callbacks) {
  return Solver(model).minimise(objectives, limits, callbacks);
}

std::optional<std::vector<Interval>> propagate(const Model& model) {
  internal::Search search(model);
  if (!search.propagate_root()) return std::nullopt;
  return search.domains();
}

}  // namespace tessera::planner::solver
