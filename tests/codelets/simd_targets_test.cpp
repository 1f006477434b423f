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

#include "tessera/base/instruction_sets.hpp"
#include "tessera/codelets/instruction_set.hpp"
#include "tessera/tests/support/process.hpp"

namespace tessera::codelets {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Runs one of the tests below, which print what they find, with a value of the variable.
test::Outcome with_target(const std::string& value, const std::string& test) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  return test::run({"/usr/bin/env", "-u", "GTEST_TOTAL_SHARDS", "-u", "GTEST_SHARD_INDEX",
                    "TESSERA_TARGET=" + value, self, "--gtest_also_run_disabled_tests",
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

TEST(TesseraTarget, OfNothingIsTheBestSet) {
  const test::Outcome outcome = with_target("", "Prints");
  for (const auto& target : internal::simd_targets())
    if (target.runs_here) {
      EXPECT_THAT(outcome.out, HasSubstr("uses " + target.name + "\n"));
      break;
    }
}

}  // namespace
}  // namespace tessera::codelets
