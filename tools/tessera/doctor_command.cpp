#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <thread>

#include "tessera/device/machine.hpp"
#include "tessera/io/npz.hpp"
#include "tessera/planner/plan_json.hpp"
#include "tessera/report/report_json.hpp"
#include "tessera/tools/exit_code.hpp"
#include "tessera/tools/internal/progress.hpp"
#include "tessera/tools/report_page.hpp"
#include "tessera/tools/tessera/commands.hpp"

namespace tessera::tools {
namespace {

std::string line(const char* what, const std::string& found) {
  return fmt::format("{:<18}{}\n", what, found);
}

int doctor() {
  std::error_code no_folder;
  const std::string folder = std::filesystem::temp_directory_path(no_folder).string();
  print_results(
      line("tessera", TESSERA_VERSION) + line("compiler", __VERSION__) +
      line("report schema", std::to_string(report::kReportSchemaVersion)) +
      line("plan schema", std::to_string(planner::kPlanSchemaVersion)) +
      line("machines", fmt::format("{}", fmt::join(device::machine_names(), ", "))) +
      line("threads", std::to_string(std::thread::hardware_concurrency())) +
      line(".npz files", io::can_read_npz() ? "yes" : "no: built without libzip-dev") +
      line("--html", can_make_pages() ? "yes" : "no: built without npm, or npm had no network") +
      line("progress bar", internal::stderr_is_terminal()
                               ? "yes"
                               : "no: stderr is not a terminal, or TERM is dumb") +
      line("temporary folder", no_folder ? "none: " + no_folder.message() : folder));
  return kOk;
}

}  // namespace

void add_doctor_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command = app.add_subcommand(
      "doctor", "Reports what this build supports and what this computer provides.");
  command->footer("Example: tessera doctor");
  command->callback([&run] { run = doctor; });
}

}  // namespace tessera::tools
