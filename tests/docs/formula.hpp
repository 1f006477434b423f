#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace tessera::test {

using Names = std::map<std::string, std::int64_t, std::less<>>;

// Evaluates a formula of docs/cost-model.md in whole numbers: + - * / %, parentheses, ceil(a, b),
// max(a, b), and [a < b] (or <=, >, >=, =), which is 1 or 0. A number or name directly before a
// bracket multiplies it. Throws std::runtime_error for anything else and for unknown names.
std::int64_t evaluate(std::string_view formula, const Names& names);

}  // namespace tessera::test
