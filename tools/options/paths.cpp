#include "tessera/tools/options/paths.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "tessera/base/error.hpp"
#include "tessera/base/write_file.hpp"

namespace tessera::tools {
namespace {

namespace fs = std::filesystem;

// The names of the validators by which an option is known to write.
const char* const kFile = "writes a file";
const char* const kFolder = "writes to a folder";

// Returns a validator that calls `check` with the path and reports its error.
CLI::Validator path_check(void (*check)(const std::string&), const char* name) {
  return {[check](std::string& path) {
            try {
              if (!path.empty()) check(path);
              return std::string();
            } catch (const Error& error) {
              return std::string(error.what());
            }
          },
          "", name};
}

// Checks a folder and the files of an earlier run in it.
void check_results_folder(const std::string& folder) {
  check_folder_writable(folder);
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed))
    if (const std::string name = entry.path().filename().string(); is_result_of_a_run(name))
      check_stays_inside(folder, name);
}

bool has_validator(CLI::Option& option, const char* name) {
  try {
    option.get_validator(name);
    return true;
  } catch (const CLI::OptionNotFound&) {
    return false;
  }
}

// A file or a folder of the command line, with its path as file_to_write() gives it.
struct Named {
  std::string option, path;
};

struct Paths {
  std::vector<Named> written, folders, read;
};

// Returns the file that a value names: FILE, @FILE or FILE.safetensors#TENSOR.
std::optional<std::string> file_of(std::string value) {
  constexpr std::string_view kTensorMark = ".safetensors#";
  if (value.size() > 1 && value[0] == '@') value.erase(0, 1);
  if (const std::size_t mark = value.rfind(kTensorMark); mark != value.npos)
    value.resize(mark + kTensorMark.size() - 1);
  std::error_code failed;
  if (!fs::is_regular_file(value, failed)) return std::nullopt;
  return file_to_write(value);
}

void add(CLI::Option& option, Paths& paths) {
  const bool is_file = has_validator(option, kFile), is_folder = has_validator(option, kFolder);
  std::error_code failed;
  for (const std::string& value : option.results()) {
    if (is_folder) {
      const fs::path folder = fs::weakly_canonical(value, failed);
      if (!failed) paths.folders.push_back({option.get_name(), folder.string()});
    } else if (const auto path = is_file ? file_to_write(value) : file_of(value)) {
      (is_file ? paths.written : paths.read).push_back({option.get_name(), *path});
    }
  }
}

void add(const CLI::App& app, Paths& paths) {
  for (const CLI::Option* option : app.get_options()) {
    // get_validator() is not const.
    add(const_cast<CLI::Option&>(*option), paths);
  }
  for (const CLI::App* command : app.get_subcommands()) add(*command, paths);
}

[[noreturn]] void refuse(const Named& output, const std::string& what) {
  throw CLI::ValidationError(output.option,
                             fmt::format("{}: {}; give another file", output.path, what));
}

void check_results(const Paths& paths, const Named& folder) {
  const auto is_inside = [&](const Named& file) {
    const fs::path path = file.path;
    return path.parent_path() == folder.path && is_result_of_a_run(path.filename().string());
  };
  for (const Named& file : paths.written)
    if (is_inside(file))
      refuse(file, fmt::format("{} writes a file of this name, too", folder.option));
  for (const Named& file : paths.read)
    if (is_inside(file))
      refuse({folder.option, file.path},
             fmt::format("{} reads this file, which would be replaced", file.option));
}

}  // namespace

void require_writable_file(CLI::Option& option) { option.check(path_check(check_writable, kFile)); }

void require_writable_folder(CLI::Option& option) {
  option.check(path_check(check_results_folder, kFolder));
}

bool is_result_of_a_run(std::string_view name) {
  constexpr std::array<std::string_view, 8> kNames{"s.npy",       "q_gradient.npy", "plan.json",
                                                   "report.json", "report.csv",     "report.html",
                                                   "q.npy",       "s_gradient.npy"};
  return std::ranges::find(kNames, name) != kNames.end() ||
         (name.starts_with("weight_gradient") && name.ends_with(".npz"));
}

void check_paths(const CLI::App& app, const std::vector<std::string>& words) {
  Paths paths;
  add(app, paths);
  for (const std::string& word : words)
    if (word.starts_with("@"))
      if (const auto path = file_of(word)) paths.read.push_back({word, *path});
  for (auto file = paths.written.begin(); file != paths.written.end(); ++file) {
    const auto twin = std::ranges::find(paths.written.begin(), file, file->path, &Named::path);
    if (twin != file) refuse(*file, fmt::format("{} writes this file, too", twin->option));
    const auto input = std::ranges::find(paths.read, file->path, &Named::path);
    const bool continues =
        input != paths.read.end() && file->option == "--checkpoint" && input->option == "--resume";
    if (input != paths.read.end() && !continues)
      refuse(*file, fmt::format("{} reads this file, which would be replaced", input->option));
  }
  for (const Named& folder : paths.folders) check_results(paths, folder);
}

void refuse_written_paths(const CLI::App& app, const std::string& why) {
  for (const CLI::Option* option : app.get_options())
    if (option->count() > 0 && (has_validator(const_cast<CLI::Option&>(*option), kFile) ||
                                has_validator(const_cast<CLI::Option&>(*option), kFolder)))
      throw CLI::ValidationError(option->get_name(), why);
}

}  // namespace tessera::tools
