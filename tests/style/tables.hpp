#pragma once

#include <string>
#include <vector>

#include "tessera/tests/style/rules.hpp"

namespace tessera::inline v0::style {

// Who may include whom. A new folder gets its row here, or its files fail.
inline const Arrows& arrows() {
  static const Arrows table = {
      {"base", {}},
      {"sparse", {"base"}},
      {"device", {"base"}},
      {"codelets", {"base"}},
      {"planner/solver", {"base"}},
      {"planner", {"planner/solver", "codelets", "base", "device/machine.hpp"}},
      {"partitioner", {"sparse", "codelets", "base"}},
      {"runtime",
       {"base", "sparse", "device", "codelets", "planner/solver", "planner", "partitioner"}},
      {"train", {"base", "sparse", "device", "partitioner", "runtime"}},
      {"tools",
       {"base", "sparse", "device", "codelets", "planner/solver", "planner", "partitioner",
        "runtime"}},
      {"tessera.hpp",  // the umbrella
       {"base", "sparse", "device", "codelets", "planner", "partitioner", "runtime"}},
      {"tests", {kEverything}},
      {"bench", {kEverything}},
      {"examples", {kEverything}},
  };
  return table;
}

inline const std::vector<std::string>& folders_with_a_page() {
  static const std::vector<std::string> folders = {
      "base",    "sparse",      "device",  "codelets", "planner/solver",
      "planner", "partitioner", "runtime", "train",    "tools"};
  return folders;
}

// Tables only.
inline const LongFiles& long_files() {
  static const LongFiles files = {};
  return files;
}

}  // namespace tessera::inline v0::style
