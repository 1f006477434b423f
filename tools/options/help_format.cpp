#include "tessera/tools/options/help_format.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
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

const char* group_of(const CLI::Option& option) {
  for (const std::string& name : option.get_lnames())
    for (const Group& group : kGroups)
      if (group.options.find(" " + name + " ") != std::string_view::npos) return group.name;
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

void format_help(CLI::App& app) {
  app.formatter(std::make_shared<HelpFormat>());
  for (CLI::Option* option : app.get_options())
    if (!option->get_group().empty()) option->group(group_of(*option));
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    format_help(*command);
}

}  // namespace tessera::tools
