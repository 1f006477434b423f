#include <CLI/CLI.hpp>
#include <memory>

#include "tessera/study/comparison.hpp"
#include "tessera/tools/commands/commands.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/options/inputs.hpp"
#include "tessera/tools/options/layer_options.hpp"
#include "tessera/tools/options/numbers.hpp"
#include "tessera/tools/options/study_output.hpp"

namespace tessera::tools {
namespace {

struct CompareArguments {
  std::string before, after, machine;
  double threshold = 5;  // percent
  StudyOutput output;
};

int compare(const CompareArguments& a) {
  const auto read = [](const std::string& path) {
    return study::read_compared(path, load_text(path));
  };
  study::ComparedFile before = read(a.before);
  study::ComparedFile after = a.after.empty() ? before : read(a.after);
  if (!a.machine.empty()) {
    if (!a.after.empty()) before = study::priced_on(before, a.machine);
    after = study::priced_on(after, a.machine);
  }
  const study::Comparison comparison(std::move(before), std::move(after));
  const int exit =
      write_study(a.output, comparison.report(a.threshold), comparison.text(a.threshold));
  return exit == kOk && comparison.growth() > a.threshold ? int(kCheckFailed) : exit;
}

}  // namespace

void add_compare_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command =
      app.add_subcommand("compare",
                         "Compares two reports or plans and prints what changed. Exits with 1 if "
                         "the total cycles or bytes grew by more than the threshold; for reports "
                         "of this computer (--machine host), if the total time did.");
  command->footer(std::string(kExitCodes) +
                  "\nExamples: tessera compare before.json after.json --threshold 2\n"
                  "          tessera compare plan.json --machine bow");
  const auto a = std::make_shared<CompareArguments>();
  command
      ->add_option("before", a->before,
                   "report written by tessera run --json, or plan written by tessera plan --json")
      ->required();
  command->add_option("after", a->after, "report or plan to compare with the first");
  command
      ->add_option("--machine", a->machine,
                   "price the plans again on this machine, with their partition: gc200, bow, mk1 "
                   "or FILE.json; a single plan is compared with itself on its own machine")
      ->type_name("MACHINE");
  require_number(command->add_option("--threshold", a->threshold, "accepted growth in percent"), 0)
      ->capture_default_str();
  add_study_options(*command, a->output);
  command->callback([a, &run] {
    if (a->after.empty() && a->machine.empty())
      throw CLI::ValidationError("after", "give a second file, or --machine");
    run = [a] { return compare(*a); };
  });
}

}  // namespace tessera::tools
