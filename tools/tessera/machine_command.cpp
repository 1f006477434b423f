#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "tessera/device/machine.hpp"
#include "tessera/tools/exit_code.hpp"
#include "tessera/tools/tessera/commands.hpp"

namespace tessera::inline v0::tools {
namespace {

std::string list() {
  std::string text = fmt::format("{:<8}{:>8}{:>18}{:>12}{:>28}{:>14}\n", "machine", "tiles",
                                 "bytes of a tile", "GHz", "received bytes a cycle", "word bits");
  for (const std::string& name : device::machine_names()) {
    const device::Machine m = device::machine_preset(name);
    text +=
        fmt::format("{:<8}{:>8}{:>18}{:>12.3f}{:>28}{:>14}\n", m.name, m.tiles, m.tile_memory.value,
                    m.clock_hz / 1e9, m.exchange_bytes_per_cycle, m.word_bits);
  }
  return text;
}

}  // namespace

void add_machine_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command = app.add_subcommand("machine", "The machines there are.");
  command->require_subcommand(1);
  command->footer("Example: tessera machine show bow > mine.json");
  command->add_subcommand("list", "A line for each preset.")->callback([&run] {
    run = [] { return print_results(list()), int(kOk); };
  });
  CLI::App* show = command->add_subcommand(
      "show", "One machine as JSON, which --machine reads when it is saved to a file.");
  const auto name = std::make_shared<std::string>();
  show->add_option("name", *name, "a preset or FILE.json")->required();
  show->callback([name, &run] {
    run = [name] {
      print_results(device::machine_to_json(device::load_machine(*name)) + "\n");
      return int(kOk);
    };
  });
}

}  // namespace tessera::inline v0::tools
