#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "tessera/base/error.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/write_file.hpp"
#include "tessera/device/host_link.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/rates.hpp"
#include "tessera/json/reader.hpp"
#include "tessera/report/host_plan.hpp"
#include "tessera/study/tables.hpp"
#include "tessera/tools/commands/commands.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/options/study_output.hpp"

namespace tessera::tools {
namespace {

// Returns the presets and this computer as tables.
study::Report machines() {
  study::Table presets{
      .key = "presets",
      .title = "Machines",
      .columns = {{"machine", "machine", -1, 1, 8},
                  {"tiles", "tiles", -1, 1, 8},
                  {"tile_memory_bytes", "bytes of a tile", -1, 1, 18},
                  {"clock_hz", "GHz", 3, 1e-9, 12},
                  {"received_bytes_per_cycle", "received bytes a cycle", -1, 1, 28},
                  {"word_bits", "word bits", -1, 1, 14}}};
  for (const std::string& name : device::machine_names()) {
    const device::Machine m = device::machine_preset(name);
    presets.rows.push_back({m.name, m.tiles, m.tile_memory.value, m.clock_hz,
                            std::int64_t(m.exchange_bytes_per_cycle), std::int64_t(m.word_bits)});
  }
  const host::HostCpu cpu = host::read_host_cpu();
  study::Table host{.key = "this_computer",
                    .title = "This computer",
                    .columns = {{"name", ""},
                                {"cpu", ""},
                                {"cores", ""},
                                {"l1_bytes", ""},
                                {"l2_bytes", ""},
                                {"l3_bytes", ""}},
                    .rows = {{device::kHostMachine, host::host_cpu_model(), cpu.cores,
                              cpu.l1_data.value, cpu.l2.value, cpu.l3.value}}};
  return {
      .name = "machine list", .title = "Machines", .tables = {std::move(presets), std::move(host)}};
}

std::string list_text(const study::Report& machines) {
  const host::HostCpu cpu = host::read_host_cpu();
  return study::table_text(machines.tables[0]) +
         fmt::format("{:<8}this computer: {}, {} cores\n{:<8}caches of {}, {} and {} KiB\n",
                     device::kHostMachine, host::host_cpu_model(), cpu.cores, "",
                     cpu.l1_data.value / 1024, cpu.l2.value / 1024, cpu.l3.value / 1024);
}

std::string host_json() {
  const json::Value all = json::parse_own(study::to_json(machines()));
  return json::items_of(all.at("this_computer"), {"this program", ""}).front().dump(2);
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
  CLI::App* list =
      command->add_subcommand("list", "Prints one line for each preset and one for this computer.");
  const auto output = std::make_shared<StudyOutput>();
  add_figures_options(*list, *output);
  list->callback([output, &run] {
    run = [output] {
      const study::Report found = machines();
      return write_study(*output, found, list_text(found));
    };
  });
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
