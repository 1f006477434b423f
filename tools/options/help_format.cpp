#include "tessera/tools/options/help_format.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "tessera/tools/options/numbers.hpp"

namespace tessera::tools {
namespace {

// Options in the order in which help shows them; those without a group come first.
struct Group {
  const char* name;
  std::string_view options;  // long names, each between spaces
};
constexpr Group kGroups[] = {
    {"Layer",
     " matrix buckets input-size output-size density sparsity-factor sparsity batch-size "
     "block-size "
     "block-rows block-cols groups single-phase data-type partials-type weighted-area-begin "
     "weighted-area-end weighted-area-weighting seed over values table input output-gradient "
     "value-range sum-duplicates "},
    {"Machine", " machine tiles-per-ipu threads dense "},
    {"Planner", " matmul-options plan-constraints plan-cache plan on-no-fit cost-model "},
    {"Output",
     " json csv html output output-dir save-buckets profile-dir trace trace-tiles explain quiet "
     "verbose "
     "report-plan report-total-cycle-counts report-dense-gradw-serial-splits report-tiles "
     "profile "}};

// The options that people use, which help shows of commands that have many.
constexpr std::string_view kUsual =
    " matrix input-size output-size density batch-size block-size single-phase data-type machine "
    "threads static plan explain json csv html output-dir quiet output table over values devices "
    "tensor "
    "m k n transpose-lhs transpose-rhs dense-sparse layers method epochs learning-rate block seed "
    "checkpoint resume beside-dense steps help help-all version config ";
constexpr std::size_t kFew = 14;

bool has_name(std::string_view names, const CLI::Option& option) {
  return std::ranges::any_of(option.get_lnames(), [&](const std::string& name) {
    return names.find(" " + name + " ") != std::string_view::npos;
  });
}

const char* group_of(const CLI::Option& option) {
  for (const Group& group : kGroups)
    if (has_name(group.options, option)) return group.name;
  return "Options";
}

// Returns the kind of a value and its legal range, which CLI11 joins by a colon.
std::pair<std::string, std::string> kind_and_range(const CLI::Option& option) {
  const std::string both = option.get_type_name();
  const std::size_t colon = both.find(':');
  if (colon == both.npos) return {both, ""};
  return {both.substr(0, colon), both.substr(colon + 1)};
}

class HelpFormat final : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";
    std::string text = " " + kind_and_range(*option).first;
    if (!option->get_default_str().empty()) text += "=" + option->get_default_str();
    if (option->get_expected_max() == CLI::detail::expected_max_vector_size) text += " ...";
    if (option->get_required()) text += " (required)";
    return text;
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string range = kind_and_range(*option).second;
    const bool is_told = !range.empty() && !range.ends_with(std::to_string(kLargestSize));
    return option->get_description() + (is_told ? fmt::format(" ({})", range) : "");
  }
};

}  // namespace

void add_help_all(CLI::App& app) {
  app.add_flag_callback("--help-all", [] {}, "print all options and exit")->configurable(false);
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    add_help_all(*command);
}

void format_help(CLI::App& app) {
  app.formatter(std::make_shared<HelpFormat>());
  for (CLI::Option* option : app.get_options())
    if (!option->get_group().empty()) option->group(group_of(*option));
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    format_help(*command);
}

void hide_rare_options(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    hide_rare_options(*command);
  const auto options = app.get_options();
  const auto is_shown = [](const CLI::Option* option) {
    return has_name(kUsual, *option) || option->get_lnames().empty();
  };
  if (options.size() <= kFew || std::ranges::all_of(options, is_shown)) return;
  for (CLI::Option* option : options)
    if (!is_shown(option)) option->group("");
  app.footer(app.get_footer() + fmt::format("\n--help-all shows all {} options.", options.size()));
}

}  // namespace tessera::tools
