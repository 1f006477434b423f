#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "tessera/base/error.hpp"
#include "tessera/base/wrapped.hpp"
#include "tessera/planner/plan_cost.hpp"
#include "tessera/pod/explain_pod.hpp"
#include "tessera/report/plan_notes.hpp"
#include "tessera/study/plan_answer.hpp"
#include "tessera/study/static_layer.hpp"
#include "tessera/tools/commands/commands.hpp"
#include "tessera/tools/commands/plan_arguments.hpp"
#include "tessera/tools/commands/plan_table.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/options/inputs.hpp"
#include "tessera/tools/options/layer_options.hpp"
#include "tessera/tools/options/models.hpp"
#include "tessera/tools/options/progress.hpp"
#include "tessera/tools/options/static_option.hpp"

namespace tessera::tools {
namespace {

planner::Options options_of(const PlanArguments& a) { return make_options(a, a.base()); }

PlanArguments with_layer_keys(const PlanArguments& given) {
  PlanArguments a = given;
  static_cast<LayerArguments&>(a) = with_layer_keys(static_cast<const LayerArguments&>(given));
  return a;
}

study::PlanAnswer make_plan(const PlanArguments& given) {
  PlanArguments a = with_layer_keys(given);
  study::PlanAnswer answer;
  answer.block_choice = choose_block(a, a.base());
  const Problem problem = ask_layer(a, answer);
  const device::Machine machine = make_machine(a);
  const planner::BestEffort planned = PlanSource(a.plan_cache)
                                          .plan_or(a.on_no_fit, problem, machine, options_of(a),
                                                   answer.stats ? &*answer.stats : nullptr);
  if (planned.result.status == planner::PlanStatus::LimitReached)
    print_message(
        fmt::format("tessera: the search stopped at searchLimit {}; a cheaper plan may exist\n",
                    planned.options.search_limit));
  answer.layer = {planned.problem, machine, planned.options, planned.result.plan};
  if (planned.relaxation) answer.relaxation = planned.result.reason;
  return answer;
}

study::PlanAnswer read_plan(const PlanArguments& a) {
  const planner::PlannedLayer read = load_plan(a.plan_file);
  study::PlanAnswer answer{.layer = read};
  if (a.layer_given) ask_layer(a, answer);
  planner::check_plan_is_for(read, answer.layer.problem,
                             a.machine_given ? make_machine(a) : read.machine, a.plan_file);
  answer.layer = read;
  return answer;
}

std::string host_plan(const PlanArguments& given) {
  PlanArguments a = with_layer_keys(given);
  study::PlanAnswer asked;
  const std::string choice = choose_block(a, {});
  const Problem problem = ask_layer(a, asked);
  study::HostAnswer answer =
      study::answer_on_host(problem, asked.stats ? &asked.pattern : nullptr, target_of(a).rates());
  answer.block_choice = choice;
  return a.csv ? report::to_csv(answer.plan) : a.json ? to_json(answer) : to_text(answer);
}

std::string static_plan(const PlanArguments& given) {
  const PlanArguments a = with_layer_keys(given);
  Problem problem = problem_of(a);
  problem.block = a.block_to_plan();
  study::StaticAnswer answer =
      study::plan_static_layer(problem, pattern_to_plan(a, problem.block), make_machine(a),
                               static_options(a, a.base()), a.explain);
  if (a.matrix.empty())
    answer.notes.insert(answer.notes.begin(), "the pattern is drawn at random, seed 1");
  if (a.csv) return planner::to_csv(answer.result.plan->cost);
  if (a.json) return to_json(answer);
  return wrapped(to_text(answer), /*indented=*/6, /*flush=*/11);
}

std::string pod_plan(const PlanArguments& given) {
  const PlanArguments a = with_layer_keys(given);
  study::PlanAnswer asked;
  std::optional<Problem> problem;
  if (a.plan_file.empty() || a.layer_given) problem = ask_layer(a, asked);
  planner::PlanCache cache(a.plan_cache);
  const pod::PodPlan plan = pod_plan_of(a, a.pod, problem, options_of(a), cache);
  if (a.csv) return study::to_csv(plan);
  std::optional<pod::PodExplanation> explanation;
  if (a.explain) explanation = pod::explain_pod(plan, &cache);
  if (a.json)
    return report::with_notes(pod::pod_plan_to_json(plan),
                              {.explanation = explanation ? to_json(*explanation) : std::string()});
  std::string text = to_string(plan);
  if (explanation) text += "\n" + to_text(*explanation);
  return wrapped(text, /*indented=*/6, /*flush=*/11);
}

std::string plan_text(const PlanArguments& a) {
  if (is_host(a)) return host_plan(a);
  Progress progress(false);
  progress.set("planning");
  if (a.is_static) return static_plan(a);
  if (a.pod.is_used()) return pod_plan(a);
  if (!a.table.empty()) {
    const std::string name = a.table == "-" ? "standard input" : a.table;
    PlanSource source(a.plan_cache);
    return plan_table(load_text(a.table), name, {make_machine(a), options_of(a), source});
  }
  const study::PlanAnswer answer = a.plan_file.empty() ? make_plan(a) : read_plan(a);
  if (a.csv) return planner::to_csv(answer.layer.plan.cost);
  return a.json ? to_json(answer, a.explain) : to_text(answer, a.explain);
}

}  // namespace

void add_plan_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command = app.add_subcommand(
      "plan", "Plans one layer, or every layer of a table, and prints the cost.");
  command->footer(std::string(kExitCodes) +
                  "\nExamples: tessera plan --input-size 1024 --output-size 1024 --density 0.1\n"
                  "          tessera plan --table popsparse_plans.tsv --cost-model popsparse");
  const auto arguments = std::make_shared<PlanArguments>();
  add_plan_options(*command, *arguments);
  command->callback([command, arguments, &run] {
    check_plan_options(*command, *arguments);
    run = [arguments] {
      write_results(arguments->output, plan_text(*arguments));
      return int(kOk);
    };
  });
}

}  // namespace tessera::tools
