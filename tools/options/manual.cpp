#include "tessera/tools/options/manual.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <sstream>
#include <vector>

#include "tessera/base/version.hpp"
#include "tessera/tools/internal/choices.hpp"

namespace tessera::tools {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_min() > 0; }

// Escapes text for roff, which interprets a backslash, a dot or a quote at the start of a line, and
// reads '-' as a hyphen.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') out += "\\e";
    if (c == '-') out += "\\-";
    if (c != '\\' && c != '-') out += c;
    if (c == '\n') out += "\\&";
  }
  return out;
}

std::string man_options(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    std::string names = option->get_name(false, true);
    for (std::size_t at = 0; (at = names.find(',', at)) != names.npos; at += 2)
      names.replace(at, 1, ", ");
    const std::string value = takes_value(*option) ? " " + option->get_type_name() : "";
    const std::string preset =
        option->get_default_str().empty() ? "" : " Default: " + option->get_default_str() + ".";
    text += fmt::format(".TP\n\\fB{}\\fR{}\n{}.{}\n", roff(names), roff(value),
                        "\\&" + roff(option->get_description()), roff(preset));
  }
  return text;
}

std::string man_command(const CLI::App& app, const std::string& name) {
  std::string text = fmt::format(".SH \"{}\"\n\\&{}\n", roff(name), roff(app.get_description()));
  text += man_options(app);
  for (const CLI::App* command : commands_of(app))
    text += man_command(*command, name + " " + command->get_name());
  return text;
}

std::string man_page(const CLI::App& app, const std::string& program) {
  return fmt::format(
             ".TH {} 1 \"\" \"tessera {}\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n\\fB{}\\fR "
             "[OPTIONS]{}\n",
             roff(program), TESSERA_VERSION, roff(program), roff(app.get_description()),
             roff(program), commands_of(app).empty() ? "" : " COMMAND [OPTIONS]") +
         man_command(app, "OPTIONS") + ".SH NOTES\n\\&" + roff(app.get_footer()) + "\n";
}

std::vector<std::string> words_of(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
    for (const std::string& name : option->get_snames()) words.push_back("-" + name);
  }
  for (const CLI::App* command : commands_of(app)) words.push_back(command->get_name());
  return words;
}

// Returns a pattern of a shell's case for each option of the program and its commands that takes
// one of a few words, with those words. Options of one name have the same words everywhere.
std::map<std::string, std::string> words_of_values(const CLI::App& app) {
  std::map<std::string, std::string> values;
  const auto add = [&](const CLI::App& one) {
    for (const CLI::Option* option : one.get_options())
      if (const std::string words = offered_values(const_cast<CLI::Option&>(*option));
          !words.empty())
        for (const std::string& name : option->get_lnames()) values["--" + name] = words;
  };
  add(app);
  for (const CLI::App* command : commands_of(app)) add(*command);
  return values;
}

std::string function_name(const std::string& program) { return "_" + program; }

std::string bash(const CLI::App& app, const std::string& program) {
  std::string cases;
  for (const CLI::App* command : commands_of(app))
    cases += fmt::format("    {}) words=\"{}\" ;;\n", command->get_name(),
                         fmt::join(words_of(*command), " "));
  std::string values;
  for (const auto& [option, words] : words_of_values(app))
    values += fmt::format("    {}) words=\"{}\" ;;\n", option, words);
  // In --name=value, bash takes the equals sign for a word of its own.
  return fmt::format(
      "# bash completion for {0}\n{1}() {{\n  local word=\"${{COMP_WORDS[COMP_CWORD]}}\" words\n"
      "  local option=\"${{COMP_WORDS[COMP_CWORD - 1]}}\"\n"
      "  [ \"$word\" != = ] || word=\n"
      "  [ \"$option\" != = ] || option=\"${{COMP_WORDS[COMP_CWORD - 2]}}\"\n"
      "  case \"${{COMP_WORDS[1]}}\" in\n{2}    *) words=\"{3}\" ;;\n  esac\n"
      "  case \"$option\" in\n{4}  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
      "  [ ${{#COMPREPLY[@]}} -gt 0 ] || COMPREPLY=($(compgen -f -- \"$word\"))\n}}\n"
      "complete -o filenames -F {1} {0}\n",
      program, function_name(program), cases, fmt::join(words_of(app), " "), values);
}

std::string zsh(const CLI::App& app, const std::string& program) {
  std::string cases;
  for (const CLI::App* command : commands_of(app))
    cases += fmt::format("    {}) options=({}) ;;\n", command->get_name(),
                         fmt::join(words_of(*command), " "));
  std::string values;
  for (const auto& [option, words] : words_of_values(app))
    values += fmt::format("    {}) options=({}) ;;\n", option, words);
  return fmt::format(
      "#compdef {0}\n{1}() {{\n  local -a options\n  case \"${{words[2]}}\" in\n{2}"
      "    *) options=({3}) ;;\n  esac\n  case \"${{words[CURRENT-1]}}\" in\n{4}  esac\n  compadd "
      "-- $options\n  _files\n}}\ncompdef {1} {0}\n",
      program, function_name(program), cases, fmt::join(words_of(app), " "), values);
}

std::string fish_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string fish_values(const CLI::Option& option) {
  const std::string words = offered_values(const_cast<CLI::Option&>(option));
  return words.empty() ? " -r" : " -x -a " + fish_quoted(words);
}

std::string fish_options(const CLI::App& app, const std::string& program,
                         const std::string& condition) {
  std::string text;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames())
      text += fmt::format("complete -c {}{} -l {}{} -d {}\n", program, condition, name,
                          takes_value(*option) ? fish_values(*option) : std::string(),
                          fish_quoted(option->get_description()));
  return text;
}

std::string fish(const CLI::App& app, const std::string& program) {
  std::string text = fish_options(app, program, "");
  for (const CLI::App* command : commands_of(app)) {
    text += fmt::format("complete -c {} -n __fish_use_subcommand -a {} -d {}\n", program,
                        command->get_name(), fish_quoted(command->get_description()));
    text += fish_options(*command, program,
                         fmt::format(" -n '__fish_seen_subcommand_from {}'", command->get_name()));
  }
  return text;
}

}  // namespace

std::optional<std::string> generated_page(const CLI::App& app, const std::string& program,
                                          const std::string& kind) {
  if (kind == "man") return man_page(app, program);
  if (kind == "bash") return bash(app, program);
  if (kind == "zsh") return zsh(app, program);
  if (kind == "fish") return fish(app, program);
  return std::nullopt;
}

}  // namespace tessera::tools
