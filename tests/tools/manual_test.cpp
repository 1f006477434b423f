#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "tessera/tests/support/process.hpp"

namespace tessera::test {
namespace {

using testing::HasSubstr;

const char* const kPrograms[] = {TESSERA_SPARSE_FC_LAYER, TESSERA_TOOL};

// The long options that a help page lists.
std::vector<std::string> options_of(const std::string& help) {
  std::vector<std::string> names;
  const std::regex name("\\n  (?:-., ?)?--([a-z-]+)");
  for (auto it = std::sregex_iterator(help.begin(), help.end(), name); it != std::sregex_iterator();
       ++it)
    names.push_back((*it)[1]);
  return names;
}

TEST(GeneratedPages, NameEveryOptionThatHelpNames) {
  for (const char* program : kPrograms) {
    const std::string help = run({program, "--help-all"}).out;
    const auto names = options_of(help);
    EXPECT_GE(names.size(), 2u) << help;
    for (const char* kind : {"man", "bash", "zsh", "fish"}) {
      std::string page = run({program, "--generate", kind}).out;
      page = std::regex_replace(page, std::regex("\\\\-"), "-");
      for (const std::string& name : names)
        EXPECT_NE(page.find((std::string(kind) == "fish" ? "-l " : "--") + name), page.npos)
            << program << " " << kind << " " << name;
    }
  }
}

TEST(GeneratedPages, NameTheOptionsOfSubCommandsToo) {
  for (const char* kind : {"man", "bash", "zsh", "fish"}) {
    std::string page = run({TESSERA_TOOL, "--generate", kind}).out;
    page = std::regex_replace(page, std::regex("\\\\-"), "-");
    for (const char* command : {"plan", "run", "bench", "convert", "compare", "report", "sweep",
                                "crossover", "advise", "network", "machine", "doctor", "train"}) {
      EXPECT_THAT(page, HasSubstr(command));
      for (const std::string& name : options_of(run({TESSERA_TOOL, command, "--help-all"}).out))
        EXPECT_NE(page.find((std::string(kind) == "fish" ? "-l " : "--") + name), page.npos)
            << kind << " " << command << " " << name;
    }
  }
}

TEST(GeneratedPages, ShellsReadThemWithoutComplaint) {
  for (const char* shell : {"bash", "zsh", "fish"})
    for (const char* program : kPrograms) {
      const std::string script = "command -v " + std::string(shell) +
                                 " >/dev/null || exit 0; \"$0\" --generate " + shell + " | " +
                                 shell + " -n";
      const Outcome outcome = run({"/bin/sh", "-c", script, program});
      EXPECT_EQ(outcome.exit, 0) << outcome.err;
      EXPECT_EQ(outcome.err, "");
    }
}

TEST(GeneratedPages, BashCompletesOptionsOfTheSubCommand) {
  const std::string script =
      "eval \"$(\"$0\" --generate bash)\"; COMP_WORDS=(tessera sweep --ov); COMP_CWORD=2; "
      "_tessera; "
      "echo \"${COMPREPLY[*]}\"";
  EXPECT_EQ(run({"/bin/bash", "-c", script, TESSERA_TOOL}).out, "--over\n");
}

TEST(GeneratedPages, BashCompletesTheValuesOfAnOption) {
  const auto completed = [](const std::string& words, int at) {
    const std::string script = "eval \"$(\"$0\" --generate bash)\"; COMP_WORDS=(" + words +
                               "); COMP_CWORD=" + std::to_string(at) +
                               "; _tessera; echo \"${COMPREPLY[*]}\"";
    return run({"/bin/bash", "-c", script, TESSERA_TOOL}).out;
  };
  EXPECT_EQ(completed("tessera run --data-type b", 3), "bfloat16\n");
  EXPECT_EQ(completed("tessera run --data-type = h", 4), "half\n");
  EXPECT_EQ(completed("tessera run --machine h", 3), "host\n");
  EXPECT_EQ(completed("tessera bench --mode p", 3), "performance plan\n");
}

TEST(Version, IsPrintedByBothPrograms) {
  for (const char* program : kPrograms)
    EXPECT_THAT(run({program, "--version"}).out, testing::StartsWith("tessera "));
}

}  // namespace
}  // namespace tessera::test
