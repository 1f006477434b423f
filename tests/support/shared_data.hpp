#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

namespace tessera::test {

// Returns the folder of shared data (real matrices are in its "data"): the environment variable
// TESSERA_SHARED, else the folder "shared" beside the source tree. Empty if it does not exist.
// Reads the environment, so only one thread may call it at a time.
inline std::optional<std::filesystem::path> shared_dir() {
  const char* chosen = std::getenv("TESSERA_SHARED");
  const std::filesystem::path path = chosen != nullptr ? chosen : TESSERA_SOURCE_DIR "/../shared";
  std::error_code ignored;
  if (!std::filesystem::is_directory(path / "data", ignored)) return std::nullopt;
  return path.lexically_normal();
}

// True if the environment variable CI is set; missing data is a failure then.
inline bool in_ci() { return std::getenv("CI") != nullptr; }

}  // namespace tessera::test

// Defines `variable`, the shared folder, for the rest of the test. Without the folder the test
// fails under CI and is skipped with a message elsewhere.
#define TESSERA_NEED_SHARED(variable)                                                          \
  const std::optional<std::filesystem::path> variable##_found = ::tessera::test::shared_dir(); \
  if (!variable##_found && ::tessera::test::in_ci())                                           \
    FAIL() << "shared data is missing: set TESSERA_SHARED to the folder that holds \"data\"";  \
  if (!variable##_found)                                                                       \
    GTEST_SKIP() << "shared data is missing: set TESSERA_SHARED to the folder that holds "     \
                    "\"data\"";                                                                \
  const std::filesystem::path variable = *variable##_found
