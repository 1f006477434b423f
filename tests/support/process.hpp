#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tessera/base/file.hpp"
#include "tessera/tests/support/temporary_folder.hpp"

extern char** environ;

namespace tessera::test {

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Outcome {
  int exit = -1;  // 128 + signal when a signal ended it
  std::string out, err;
};

// Runs a program with these arguments, waits for it, and returns its output. `out_path` redirects
// stdout to that file. `start_in` is the working folder; if it is empty, this program's.
inline Outcome run(const std::vector<std::string>& command, const std::string& out_path = {},
                   const std::string& start_in = {}) {
  const TemporaryFolder folder;
  const std::string out = out_path.empty() ? folder / "out" : out_path, err = folder / "err";
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  const int flags = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, out.c_str(), flags, 0600);
  posix_spawn_file_actions_addopen(&files, 2, err.c_str(), flags, 0600);
  if (!start_in.empty()) posix_spawn_file_actions_addchdir_np(&files, start_in.c_str());
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, arguments[0], &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) throw std::runtime_error("cannot start " + command[0]);
  int status = 0;
  waitpid(child, &status, 0);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, out_path.empty() ? read_file(out) : std::string(), read_file(err)};
}

}  // namespace tessera::test
