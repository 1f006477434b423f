#include <CLI/CLI.hpp>
#include <memory>

#include "tessera/tools/commands/commands.hpp"
#include "tessera/tools/commands/network_run.hpp"
#include "tessera/tools/options/host_options.hpp"
#include "tessera/tools/options/layer_options.hpp"
#include "tessera/tools/options/numbers.hpp"
#include "tessera/tools/options/paths.hpp"

namespace tessera::tools {

void add_network_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command = app.add_subcommand("network",
                                         "Plans a network of sparse and dense layers together and "
                                         "runs it as one program, or runs it here.");
  command->footer(std::string(kExitCodes) +
                  "\nExample: tessera network examples/network.json --steps 10 --explain");
  const auto a = std::make_shared<NetworkArguments>();
  command->add_option("file", a->file, "the network, as JSON")->required();
  constexpr std::int64_t kMostSteps = std::int64_t{1} << 20;
  require_whole(
      command->add_option("--steps", a->steps, "times that the program runs on the same batch"), 1,
      kMostSteps)
      ->capture_default_str();
  require_seed(
      command->add_option("--seed", a->seed, "of the weights, inputs and labels that are drawn"))
      ->capture_default_str();
  require_whole(
      command->add_option("--threads", a->threads, "threads of this computer; 0 means all"), 0,
      kMostThreads)
      ->capture_default_str();
  command->add_flag("--isolate", a->isolate,
                    "give every tile memory of its own and copy all bytes between tiles");
  command->add_flag("--recompute", a->recompute,
                    "compute every second result again for the backward passes, to save memory");
  add_study_options(*command, a->output);
  command
      ->add_flag("--explain", a->explain,
                 "also print the cost of new patterns, what joint planning gained, the plan of "
                 "each layer and the program")
      ->excludes("--json")
      ->excludes("--csv");
  require_writable_file(
      *command->add_option("--trace", a->trace, "write a trace of the last step for Perfetto")
           ->type_name("FILE"));
  command
      ->add_option("--buckets", a->buckets,
                   "FILE of encoded weights of the sparse layers, written by --save-buckets for "
                   "this network, machine and options; they are not encoded again")
      ->type_name("FILE");
  require_writable_file(
      *command
           ->add_option("--save-buckets", a->save_buckets,
                        "write the encoded weights of the sparse layers, before the first step")
           ->type_name("FILE"));
  add_machine_options(*command, a->layer);
  command
      ->add_option("--matmul-options", a->layer.matmul_options,
                   "planner options as a JSON object, for all layers")
      ->type_name("JSON");
  command->callback([command, a, &run] {
    refuse_tile_options(*command, a->layer,
                        {"--isolate", "--recompute", "--explain", "--trace", "--tiles-per-ipu",
                         "--buckets", "--save-buckets"});
    run = [a] { return is_host(a->layer) ? network_on_host(*a) : network_on_machine(*a); };
  });
}

}  // namespace tessera::tools
