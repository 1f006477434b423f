// The choice of an instruction set by the environment variable TESSERA_TARGET.

#include "tessera/codelets/internal/fast/simd_targets.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/instruction_sets.hpp"
#include "tessera/codelets/instruction_set.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/tests/support/process.hpp"

namespace tessera::codelets {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Runs one of the tests below, which print what they find, with a value of the variable.
test::Outcome with_target(const std::string& value, const std::string& test) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  return test::run({"/usr/bin/env", "TESSERA_TARGET=" + value, self,
                    "--gtest_also_run_disabled_tests",
                    "--gtest_filter=WithTarget.DISABLED_" + test});
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  return text;
}

TEST(WithTarget, DISABLED_Prints) {
  std::printf("uses %s\n", instruction_set().c_str());
  for (const auto& target : internal::simd_targets())
    if (target.runs_here) std::printf("may use %s\n", target.name.c_str());
  {
    const internal::UseSimdTarget worst(internal::simd_targets().back());
  }
  std::printf("afterwards %s\n", instruction_set().c_str());
}

TEST(WithTarget, DISABLED_IsRefused) {
  for (int call = 0; call < 2; ++call) {
    std::printf("%s\n", test::refusal([] { make_executor(1); }).c_str());
    test::refusal([] { make_executor(ExecutorKind::Threads, 2); });
    test::refusal([] { instruction_set(); });
  }
}

TEST(TesseraTarget, ChoosesTheInstructionSetOfTheProcess) {
  if (!chosen_instruction_set().empty()) GTEST_SKIP() << "this run has a choice already";
  std::string better;
  for (const auto& target : internal::simd_targets()) {
    if (!target.runs_here) continue;
    for (const std::string& name : {target.name, lower(target.name)}) {
      const test::Outcome outcome = with_target(name, "Prints");
      EXPECT_EQ(outcome.exit, 0) << outcome.out;
      EXPECT_THAT(outcome.out, AllOf(HasSubstr("uses " + target.name + "\n"),
                                     HasSubstr("afterwards " + target.name + "\n")));
      if (!better.empty()) {
        EXPECT_THAT(outcome.out, testing::Not(HasSubstr("may use " + better + "\n")));
      }
    }
    better = target.name;
  }
}

TEST(TesseraTarget, RefusesAtTheFirstUseWhatThisComputerDoesNotHave) {
  if (!chosen_instruction_set().empty()) GTEST_SKIP() << "this run has a choice already";
  for (const char* const name : {"avx9", "avx", "AVX2 ", "SVE2", "\x1b[1m"}) {
    const test::Outcome outcome = with_target(name, "IsRefused");
    EXPECT_EQ(outcome.exit, 0) << outcome.out;
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("TESSERA_TARGET is \""),
                                   HasSubstr("the instruction sets of this computer are"),
                                   HasSubstr(instruction_set()), testing::Not(HasSubstr("\x1b"))));
  }
}

TEST(TesseraTarget, OfNothingIsTheBestSet) {
  const test::Outcome outcome = with_target("", "Prints");
  for (const auto& target : internal::simd_targets())
    if (target.runs_here) {
      EXPECT_THAT(outcome.out, HasSubstr("uses " + target.name + "\n"));
      break;
    }
}

// base/instruction_sets.cpp lists the sets that nothing is compiled for, as target_choice.hpp does.
TEST(TesseraTarget, KnowsTheSetsThatKernelsWereCompiledFor) {
  const test::Outcome outcome = with_target("none", "IsRefused");
  std::vector<std::string> names;
  for (const auto& target : internal::simd_targets())
    if (target.runs_here) names.push_back(target.name);
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  if (!chosen_instruction_set().empty()) GTEST_SKIP() << "this run has a choice already";
  EXPECT_THAT(outcome.out, HasSubstr("are " + list + ";"));
}

}  // namespace
}  // namespace tessera::codelets
