#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <thread>

#include "tessera/base/commit.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/instruction_sets.hpp"
#include "tessera/base/version.hpp"
#include "tessera/base/wrapped.hpp"
#include "tessera/codelets/instruction_set.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/rates.hpp"
#include "tessera/io/npz.hpp"
#include "tessera/planner/plan_json.hpp"
#include "tessera/report/host_plan.hpp"
#include "tessera/report/report_json.hpp"
#include "tessera/tools/commands/commands.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/options/inputs.hpp"
#include "tessera/tools/options/manual.hpp"
#include "tessera/tools/options/progress.hpp"
#include "tessera/tools/page/report_page.hpp"

namespace tessera::tools {
namespace {

std::string line(const char* what, const std::string& found) {
  return fmt::format("{:<18}{}\n", what, found);
}

std::string dense_products() {
  const std::string kernel = host::dense_kernel_name();
  if (kernel == "oneDNN") return kernel;
  return kernel + ": no oneDNN; install libdnnl-dev and build again for faster ones";
}

std::string instruction_set() {
  const std::string choice = chosen_instruction_set();
  if (choice.empty()) return codelets::instruction_set();
  return fmt::format("{}, chosen by {}", codelets::instruction_set(), kInstructionSetVariable);
}

std::string loops() {
  const std::string count = std::to_string(std::thread::hardware_concurrency());
  if (has_executor(ExecutorKind::Tbb)) return count + ", oneTBB";
  return count + ", std::jthread: built without libtbb-dev or with TESSERA_TBB=OFF";
}

// Returns whether forecasts for this computer use rates that were measured on it.
std::string calibration() {
  constexpr const char* kRemedy = "run tessera machine calibrate";
  const std::string path = report::host_rates_path();
  if (path.empty()) return "no: set XDG_CACHE_HOME or HOME, then " + std::string(kRemedy);
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown))
    return fmt::format("no: {}; {}",
                       host::default_host_rates().cpu_model == host::host_cpu_model()
                           ? "forecasts use default rates"
                           : "the first forecast measures this processor",
                       kRemedy);
  try {
    const host::HostRates rates = host::host_rates_from_json(load_text(path), path);
    if (rates.cpu_model == host::host_cpu_model() &&
        rates.dense_kernel == host::dense_kernel_name())
      return "yes: " + path;
    return fmt::format("no: {} is of another processor or dense kernel; {}", path, kRemedy);
  } catch (const Error&) {
    return fmt::format("no: {} is damaged or of another version; {}", path, kRemedy);
  }
}

int doctor() {
  std::error_code no_folder;
  const std::string folder = std::filesystem::temp_directory_path(no_folder).string();
  constexpr std::size_t kFindings = 18;
  print_text(wrapped(
      line("tessera", std::string(TESSERA_VERSION) + ", commit " + commit()) +
          line("compiler", __VERSION__) +
          line("report schema", std::to_string(report::kReportSchemaVersion)) +
          line("plan schema", std::to_string(planner::kPlanSchemaVersion)) +
          line("machines", fmt::format("{}", fmt::join(device::machine_names(), ", "))) +
          line("processor", host::host_cpu_model()) + line("instruction set", instruction_set()) +
          line("threads", loops()) + line("dense products", dense_products()) +
          line("calibration", calibration()) +
          line(".npz files", io::can_read_npz()
                                 ? "yes"
                                 : "no: built without libzip-dev; install it and build again") +
          line("--html", can_make_pages() ? "yes"
                                          : "no: built without npm, or npm had no network; install "
                                            "npm and configure again") +
          line("progress bar",
               stderr_is_terminal() ? "yes" : "no: stderr is not a terminal, or TERM is dumb") +
          line("temporary folder", no_folder ? "none: " + no_folder.message() : folder),
      kFindings, kFindings));
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
