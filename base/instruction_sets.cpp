#include "tessera/base/instruction_sets.hpp"

#include "tessera/base/vector_targets.hpp"
// The list of targets must come before the headers of Highway.
#include <fmt/format.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/printable.hpp"

namespace tessera {
namespace {

char upper(char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; }

bool is_name(std::string_view text, std::string_view name) {
  return std::ranges::equal(text, name, {}, upper, upper);
}

// Returns the sets of this CPU among those that code is compiled for, best first. Highway ranks
// them: the lower the bit, the better.
std::vector<std::int64_t> sets_of_this_cpu() {
  std::vector<std::int64_t> sets;
  std::int64_t left = (hwy::SupportedTargets() | HWY_STATIC_TARGET) & HWY_TARGETS;
  for (; left != 0; left &= left - 1) sets.push_back(left & -left);
  return sets;
}

std::int64_t read_choice(const std::string& choice) {
  if (choice.empty()) return hwy::SupportedTargets() | HWY_STATIC_TARGET;
  const std::vector<std::int64_t> sets = sets_of_this_cpu();
  for (const std::int64_t set : sets)
    if (is_name(choice, hwy::TargetName(set)))
      return (hwy::SupportedTargets() | HWY_STATIC_TARGET) & ~(set - 1);
  std::vector<std::string_view> names;
  for (const std::int64_t set : sets) names.emplace_back(hwy::TargetName(set));
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("{} is \"{}\"; the instruction sets of this computer are {}; name one of "
                          "them, or unset the variable for the best one",
                          kInstructionSetVariable, printable(choice), fmt::join(names, ", ")));
}

// Vector code finds its functions at its first call, so the choice must be made before that.
[[maybe_unused]] const bool kIsChosen = [] {
  try {
    if (!chosen_instruction_set().empty())
      hwy::SetSupportedTargetsForTest(allowed_instruction_sets());
  } catch (const Error&) {  // is thrown again at the first use
  }
  return true;
}();

}  // namespace

std::int64_t allowed_instruction_sets() {
  static const std::int64_t allowed = read_choice(chosen_instruction_set());
  return allowed;
}

std::string chosen_instruction_set() {
  const char* const value = std::getenv(kInstructionSetVariable);
  return value == nullptr ? "" : value;
}

}  // namespace tessera
