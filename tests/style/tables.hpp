#pragma once

#include <string>
#include <vector>

#include "tessera/tests/style/header_users.hpp"
#include "tessera/tests/style/option_fields.hpp"
#include "tessera/tests/style/rules.hpp"

namespace tessera::style {

// Defines which folder may include which. A new folder needs a row here, or its files fail.
inline const Arrows& arrows() {
  static const Arrows table = {
      {"base", {}},
      {"json", {"base"}},
      {"sparse", {"base"}},
      {"io", {"sparse", "json", "base"}},
      {"verify", {"sparse", "base"}},
      {"device", {"json", "base"}},
      {"collectives", {"device", "base"}},
      {"codelets", {"base"}},
      {"planner", {"codelets", "json", "base", "device/machine.hpp", "device/machine_json.hpp"}},
      {"partitioner", {"sparse", "codelets", "base"}},
      {"layer", {"codelets", "partitioner", "verify", "sparse", "base"}},
      {"host", {"layer", "codelets", "partitioner", "verify", "sparse", "json", "base"}},
      {"runtime",
       {"layer", "device", "codelets", "planner", "partitioner", "verify", "io", "sparse", "base"}},
      {"distributed", {"layer", "host", "io", "verify", "sparse", "base"}},
      {"pod",
       {"distributed", "layer", "runtime", "collectives", "device", "codelets", "planner",
        "partitioner", "verify", "sparse", "json", "base"}},
      {"report",
       {"runtime", "host", "io", "device", "planner", "codelets", "partitioner", "verify", "json",
        "base"}},
      {"train",
       {"layer", "report", "runtime", "host", "io", "device", "planner", "codelets", "partitioner",
        "verify", "sparse", "json", "base"}},
      {"study",
       {"layer", "report", "pod", "collectives", "runtime", "host", "io", "planner", "partitioner",
        "codelets", "device", "verify", "sparse", "json", "base"}},
      {"tools/internal", {}},
      {"tools/page", {"report", "runtime", "partitioner", "json", "base"}},
      {"tools/options",
       {"tools/internal", "tools/page", "study", "report", "pod", "runtime", "host", "io", "json",
        "partitioner", "planner", "codelets", "device", "sparse", "base"}},
      {"tools/run",
       {"layer", "tools/internal", "tools/options", "tools/page", "study", "report", "train", "pod",
        "runtime", "host", "io", "verify", "partitioner", "planner", "codelets", "device", "sparse",
        "base"}},
      {"tools/ranks",
       {"layer", "tools/run", "tools/options", "study", "report", "train", "distributed", "host",
        "io", "verify", "sparse", "base"}},
      {"tools/commands",
       {"tools/internal", "tools/run", "tools/options", "tools/page", "study", "report", "train",
        "pod", "runtime", "host", "io", "json", "verify", "partitioner", "planner", "codelets",
        "device", "sparse", "base"}},
      {"tools", {"tools/commands", "tools/ranks", "tools/run", "tools/options", "base"}},
      {"tessera.hpp",  // the umbrella
       {"layer", "report", "runtime", "host", "io", "verify", "partitioner", "planner", "codelets",
        "device", "sparse", "base"}},
      {"python",
       {"layer", "report", "runtime", "host", "train", "io", "verify", "partitioner", "planner",
        "codelets", "device", "sparse", "base", "study", "tools/page"}},
      {"tests", {kEverything}},
      {"bench", {kEverything}},
      {"examples", {kEverything}},
  };
  return table;
}

inline const std::vector<std::string>& folders_with_a_page() {
  static const std::vector<std::string> folders = {
      "base",        "json",       "sparse",        "io",          "verify",      "device",
      "collectives", "codelets",   "planner",       "partitioner", "layer",       "host",
      "runtime",     "pod",        "report",        "study",       "train",       "distributed",
      "tools",       "tools/page", "tools/options", "tools/run",   "tools/ranks", "tools/commands",
      "python"};
  return folders;
}

// These files hold tables only.
inline const LongFiles& long_files() {
  static const LongFiles files = {};
  return files;
}

// Public headers that no command, no Python function and no listed example reaches.
inline const UnusedHeaders& headers_without_a_user() {
  static const UnusedHeaders headers = {};
  return headers;
}

inline const UnreadFields& unread_option_fields() {
  static const UnreadFields fields = {};
  return fields;
}

}  // namespace tessera::style
