#include "tessera/planner/static_explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tessera/json/value.hpp"
#include "tessera/planner/internal/terms_text.hpp"

namespace tessera::planner {
namespace {

using internal::percent_of;
using Json = json::Value;

std::string terms_text(const PlanCost& cost) {
  std::string text = "terms\n";
  for (const PassCost& pass : cost.passes) {
    text += fmt::format("  {:<31} {:>12} cycles {:5.1f} %\n", to_string(pass.pass),
                        pass.cycles().value, percent_of(pass.cycles(), cost.cycles));
    for (const CostTerm& term : pass.terms)
      if (term.cycles > Cycles())
        text +=
            fmt::format("    {:<29} {:>12} cycles {:5.1f} %  {} bytes\n", to_string(term.name),
                        term.cycles.value, percent_of(term.cycles, cost.cycles), term.temp.value);
  }
  return text;
}

std::string bounds_text(const StaticBounds& bounds, Cycles fwd) {
  std::string text = "bounds     cycles of Fwd that one kind of step takes at least\n";
  for (const auto& [name, cycles] :
       {std::pair{"kernel", bounds.kernel}, std::pair{"bytes", bounds.bytes},
        std::pair{"barriers and launches", bounds.waiting}})
    text += fmt::format("  {:<31} {:>12} cycles {:5.1f} %\n", name, cycles.value,
                        percent_of(cycles, fwd));
  return text;
}

std::string counted(std::int64_t count, const char* name) {
  return fmt::format("{} {}{}", count, name, count == 1 ? "" : "s");
}

std::string runner_ups_text(const StaticPlanResult& result) {
  const Cycles best = result.plan->cost.cycles;
  std::string text =
      fmt::format("next       of {}\n", counted(result.evaluations, "cut") + " counted");
  for (const StaticRunnerUp& r : result.runner_ups)
    text += fmt::format(
        "  {:<31} {:>12} cycles {:+5.1f} %\n",
        fmt::format("{} * {}, {} tiles, {}", r.z_parts, r.bands, r.tiles, to_string(r.runs)),
        r.cycles.value, percent_of(r.cycles - best, best));
  return text;
}

std::string popsparse_text(const StaticExplanation& answer, Cycles ours) {
  if (!answer.popsparse) return fmt::format("PopLibs    {}\n", answer.no_popsparse);
  const StaticPlan& plan = *answer.popsparse_plan;
  return fmt::format(
      "PopLibs    {} of the batch, {}: {} cycles counted, {:.2f} times as many; its own estimate "
      "of Fwd is {}\n",
      counted(std::ssize(plan.parts), "part"), counted(std::ssize(plan.bands) - 1, "band"),
      answer.popsparse->cycles.value,
      double(answer.popsparse->cycles.value) / std::max(1.0, double(ours.value)),
      plan.cost.cycles.value);
}

}  // namespace

StaticExplanation explain_static(const Problem& problem, const BlockPattern& pattern,
                                 const device::Machine& machine, const StaticOptions& options) {
  StaticExplanation explanation{.bounds = static_bounds(problem, pattern, machine)};
  auto popsparse = plan_static_as_poplibs(problem, pattern, machine, options);
  explanation.no_popsparse = popsparse.reason;
  if (!popsparse.plan) return explanation;
  explanation.popsparse = count_static_cost(*popsparse.plan, problem, pattern, machine);
  explanation.popsparse_plan = std::move(popsparse.plan);
  return explanation;
}

std::string to_text(const StaticExplanation& explanation, const StaticPlanResult& result) {
  const PlanCost& cost = result.plan->cost;
  return terms_text(cost) + bounds_text(explanation.bounds, cost.passes.front().cycles()) +
         runner_ups_text(result) + popsparse_text(explanation, cost.cycles);
}

std::string to_json(const StaticExplanation& answer, const StaticPlanResult& result) {
  Json next = json::List();
  for (const StaticRunnerUp& r : result.runner_ups)
    next.push_back({{"z_parts", r.z_parts},
                    {"bands", r.bands},
                    {"tiles", r.tiles},
                    {"runs", to_string(r.runs)},
                    {"cycles", r.cycles.value},
                    {"temp_bytes", r.temp.value}});
  Json json{{"bounds",
             {{"kernel", answer.bounds.kernel.value},
              {"bytes", answer.bounds.bytes.value},
              {"waiting", answer.bounds.waiting.value}}},
            {"counted_cuts", result.evaluations},
            {"runner_ups", std::move(next)},
            {"poplibs", nullptr}};
  if (answer.popsparse)
    json["poplibs"] = {{"z_parts", answer.popsparse_plan->z_parts},
                       {"bands", answer.popsparse_plan->bands.size() - 1},
                       {"counted_cycles", answer.popsparse->cycles.value},
                       {"estimated_cycles", answer.popsparse_plan->cost.cycles.value}};
  return json.dump();
}

}  // namespace tessera::planner
