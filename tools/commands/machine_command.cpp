#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "tessera/base/error.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/write_file.hpp"
#include "tessera/device/host_link.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/rates.hpp"
#include "tessera/report/host_plan.hpp"
#include "tessera/study/forecast_model.hpp"
#include "tessera/tools/commands/commands.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/options/inputs.hpp"

namespace tessera::tools {
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
  const host::HostCpu cpu = host::read_host_cpu();
  return text + fmt::format(
                    "{:<8}this computer: {}, {} cores\n"
                    "{:<8}caches of {}, {} and {} KiB\n",
                    device::kHostMachine, host::host_cpu_model(), cpu.cores, "",
                    cpu.l1_data.value / 1024, cpu.l2.value / 1024, cpu.l3.value / 1024);
}

std::string host_json() {
  const host::HostCpu cpu = host::read_host_cpu();
  const nlohmann::ordered_json json = {
      {"name", device::kHostMachine},  {"cpu", host::host_cpu_model()}, {"cores", cpu.cores},
      {"l1_bytes", cpu.l1_data.value}, {"l2_bytes", cpu.l2.value},      {"l3_bytes", cpu.l3.value}};
  return json.dump(2);
}

// Returns the path for the rates, which is checked before seconds are spent on measuring them.
std::filesystem::path checked_rates_path() {
  const std::filesystem::path path = report::host_rates_path();
  if (path.empty())
    throw Error(ErrorCode::InvalidArgument,
                "there is no folder to store the rates in; set XDG_CACHE_HOME or HOME");
  check_folder_writable(path.parent_path().string());
  std::error_code unknown;
  if (std::filesystem::exists(path.parent_path(), unknown)) {
    check_stays_inside(path.parent_path().string(), path.filename().string());
    check_writable(path.string());
  }
  return path;
}

std::string calibrate() {
  const std::filesystem::path path = checked_rates_path();
  const host::HostRates rates = host::measure_settled_rates();
  write_folder(path.parent_path().string(), {{path.filename().string(), to_json(rates)}});
  return report::rates_text(rates) + fmt::format("\nwritten to {}\n", path.string());
}

std::string machine_json(const std::string& name) {
  return name == device::kHostMachine
             ? host_json()
             : device::machine_to_json(device::load_machine(name), device::load_host_link(name));
}

}  // namespace

void add_machine_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command =
      app.add_subcommand("machine", "Lists the machines, prints one, or measures this computer.");
  command->require_subcommand(1);
  command->footer("Example: tessera machine show bow > mine.json");
  command->add_subcommand("list", "Prints one line for each preset and one for this computer.")
      ->callback([&run] { run = [] { return print_results(list()), int(kOk); }; });
  command
      ->add_subcommand(
          "calibrate",
          "Measures the speed of this computer, again and again until every rate has "
          "settled, and saves it for the forecasts of --machine host. Refuses if other "
          "programs disturb it.")
      ->callback([&run] { run = [] { return print_results(calibrate()), int(kOk); }; });
  CLI::App* show = command->add_subcommand(
      "show",
      "Prints one machine as JSON, in the form that --machine FILE.json reads. For host it prints "
      "the processor, the cores and the caches of this computer, which --machine does not read.");
  const auto name = std::make_shared<std::string>();
  show->add_option("name", *name, "name of a preset, FILE.json or host")->required();
  show->callback([name, &run] {
    run = [name] {
      print_results(machine_json(*name) + "\n");
      return int(kOk);
    };
  });
}

}  // namespace tessera::tools
