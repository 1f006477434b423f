#include "tessera/bench/size/program.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <stdexcept>

namespace tessera::bench {
namespace {

[[noreturn]] void become(const std::vector<std::string>& command, std::int64_t most_bytes) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const int nowhere = ::open("/dev/null", O_WRONLY);
  ::dup2(nowhere, STDOUT_FILENO);
  if (most_bytes > 0) {
    const rlimit limit{static_cast<rlim_t>(most_bytes), static_cast<rlim_t>(most_bytes)};
    ::setrlimit(RLIMIT_AS, &limit);
  }
  ::execv(words[0], words.data());
  ::_exit(127);
}

}  // namespace

ProgramRun run_program(const std::vector<std::string>& command,
                       std::int64_t most_bytes_of_addresses) {
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("cannot start " + command[0]);
  if (child == 0) become(command, most_bytes_of_addresses);
  int status = 0;
  rusage usage{};
  ::wait4(child, &status, 0, &usage);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(),
          double(usage.ru_maxrss) * 1024};
}

std::int64_t bytes_read() {
  std::ifstream file("/proc/self/io");
  std::string key;
  std::int64_t bytes = 0;
  if (!(file >> key >> bytes) || key != "rchar:")
    throw std::runtime_error("no rchar in /proc/self/io");
  return bytes;
}

}  // namespace tessera::bench
