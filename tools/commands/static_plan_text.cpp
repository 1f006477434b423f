#include "tessera/tools/commands/static_plan_text.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tessera/base/printable.hpp"
#include "tessera/planner/plan_json.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/study/static_layer.hpp"
#include "tessera/tools/options/inputs.hpp"
#include "tessera/tools/options/static_option.hpp"

namespace tessera::tools {
namespace {

using Json = nlohmann::ordered_json;

void add_explanation(const planner::BlockPattern& pattern, StaticAnswer& answer) {
  answer.bounds = planner::static_bounds(answer.problem, pattern, answer.machine);
  auto popsparse =
      planner::plan_static_as_poplibs(answer.problem, pattern, answer.machine, answer.options);
  answer.no_popsparse = popsparse.reason;
  if (!popsparse.plan) return;
  answer.popsparse =
      planner::count_static_cost(*popsparse.plan, answer.problem, pattern, answer.machine);
  answer.popsparse_plan = std::move(popsparse.plan);
}

double percent(Cycles part, Cycles whole) {
  return whole.value == 0 ? 0 : 100 * double(part.value) / double(whole.value);
}

std::string terms_text(const planner::PlanCost& cost) {
  std::string text = "terms\n";
  for (const planner::PassCost& pass : cost.passes) {
    text += fmt::format("  {:<31} {:>12} cycles {:5.1f} %\n", to_string(pass.pass),
                        pass.cycles().value, percent(pass.cycles(), cost.cycles));
    for (const planner::CostTerm& term : pass.terms)
      if (term.cycles > Cycles())
        text += fmt::format("    {:<29} {:>12} cycles {:5.1f} %  {} bytes\n",
                            planner::to_string(term.name), term.cycles.value,
                            percent(term.cycles, cost.cycles), term.temp.value);
  }
  return text;
}

std::string bounds_text(const planner::StaticBounds& bounds, Cycles fwd) {
  std::string text = "bounds     cycles of Fwd that one kind of step takes at least\n";
  for (const auto& [name, cycles] :
       {std::pair{"kernel", bounds.kernel}, std::pair{"bytes", bounds.bytes},
        std::pair{"barriers and launches", bounds.waiting}})
    text +=
        fmt::format("  {:<31} {:>12} cycles {:5.1f} %\n", name, cycles.value, percent(cycles, fwd));
  return text;
}

std::string counted(std::int64_t count, const char* name) {
  return fmt::format("{} {}{}", count, name, count == 1 ? "" : "s");
}

std::string runner_ups_text(const StaticAnswer& answer) {
  const Cycles best = answer.result.plan->cost.cycles;
  std::string text =
      fmt::format("next       of {}\n", counted(answer.result.evaluations, "cut") + " counted");
  for (const planner::StaticRunnerUp& r : answer.result.runner_ups)
    text += fmt::format("  {:<31} {:>12} cycles {:+5.1f} %\n",
                        fmt::format("{} * {}, {} tiles, {}", r.z_parts, r.bands, r.tiles,
                                    planner::to_string(r.runs)),
                        r.cycles.value, percent(r.cycles - best, best));
  return text;
}

std::string popsparse_text(const StaticAnswer& answer) {
  if (!answer.popsparse) return fmt::format("PopLibs    {}\n", answer.no_popsparse);
  const planner::StaticPlan& plan = *answer.popsparse_plan;
  return fmt::format(
      "PopLibs    {} of the batch, {}: {} cycles counted, {:.2f} times as many; its own estimate "
      "of Fwd is {}\n",
      counted(std::ssize(plan.parts), "part"), counted(std::ssize(plan.bands) - 1, "band"),
      answer.popsparse->cycles.value,
      double(answer.popsparse->cycles.value) /
          std::max(1.0, double(answer.result.plan->cost.cycles.value)),
      plan.cost.cycles.value);
}

Json explanation_json(const StaticAnswer& answer) {
  Json next = Json::array();
  for (const planner::StaticRunnerUp& r : answer.result.runner_ups)
    next.push_back({{"z_parts", r.z_parts},
                    {"bands", r.bands},
                    {"tiles", r.tiles},
                    {"runs", planner::to_string(r.runs)},
                    {"cycles", r.cycles.value},
                    {"temp_bytes", r.temp.value}});
  Json json{{"bounds",
             {{"kernel", answer.bounds->kernel.value},
              {"bytes", answer.bounds->bytes.value},
              {"waiting", answer.bounds->waiting.value}}},
            {"counted_cuts", answer.result.evaluations},
            {"runner_ups", std::move(next)},
            {"poplibs", nullptr}};
  if (answer.popsparse)
    json["poplibs"] = {{"z_parts", answer.popsparse_plan->z_parts},
                       {"bands", answer.popsparse_plan->bands.size() - 1},
                       {"counted_cycles", answer.popsparse->cycles.value},
                       {"estimated_cycles", answer.popsparse_plan->cost.cycles.value}};
  return json;
}

}  // namespace

StaticAnswer plan_static_layer(const LayerArguments& arguments, const planner::Options& base,
                               const sparse::Csr<double>& elements, bool explain) {
  const sparse::Csr<double> given = in_whole_blocks(elements, arguments.block);
  const auto matrix = study::in_kernel_blocks(sparse::checked(given), elements.rows, elements.cols);
  StaticAnswer answer{.problem = problem_of(arguments),
                      .machine = make_machine(arguments),
                      .options = static_options(arguments, base)};
  Problem& problem = answer.problem;
  problem.size.x = elements.rows;
  problem.size.y = elements.cols;
  problem.block = matrix->block;
  problem.density =
      double(matrix->blocks()) / (double(matrix->block_rows()) * double(matrix->block_cols()));
  problem = study::with_static_sums(problem);
  const planner::BlockPattern pattern = study::block_pattern(*matrix);
  answer.result = study::plan_static_or_throw(problem, pattern, answer.machine, answer.options);
  if (const std::string note = study::kernel_block_note(arguments.block); !note.empty())
    answer.notes.push_back(note);
  if (!answer.options.poplibs_parity && matrix->blocks() > 0)
    answer.notes.push_back(study::dynamic_comparison(
        answer.result.plan->cost.cycles, problem, answer.machine, sparse::pattern_stats(*matrix)));
  if (explain) add_explanation(pattern, answer);
  return answer;
}

std::string to_text(const StaticAnswer& answer) {
  std::string text;
  for (const std::string& note : answer.notes) text += fmt::format("note       {}\n", note);
  text +=
      fmt::format("layer      {}\nmachine    {}: {} tiles of {} bytes\n{}",
                  to_string(answer.problem), printable(answer.machine.name), answer.machine.tiles,
                  answer.machine.tile_memory.value, to_string(*answer.result.plan));
  if (!answer.bounds) return text;
  const planner::PlanCost& cost = answer.result.plan->cost;
  return text + "\n" + terms_text(cost) +
         bounds_text(*answer.bounds, cost.passes.front().cycles()) + runner_ups_text(answer) +
         popsparse_text(answer);
}

std::string to_json(const StaticAnswer& answer) {
  const Json layer = Json::parse(planner::plan_to_json({answer.problem, answer.machine, {}, {}}));
  Json document{{"problem", layer["problem"]},
                {"machine", layer["machine"]},
                {"notes", answer.notes},
                {"plan", Json::parse(planner::to_json(*answer.result.plan))}};
  if (answer.bounds) document["explanation"] = explanation_json(answer);
  return document.dump(2) + "\n";
}

}  // namespace tessera::tools
