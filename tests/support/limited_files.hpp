#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tessera/base/write_file.hpp"

namespace tessera::test {

// Makes the call in a process whose files cannot grow beyond `bytes`, as on a full disk. Returns
// true if it throws CannotWrite.
template <class Call>
bool cannot_write_beyond(rlim_t bytes, const Call& call) {
  constexpr int kCannotWrite = 42;
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, bytes};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      call();
    } catch (const CannotWrite&) {
      ::_exit(kCannotWrite);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == kCannotWrite;
}

}  // namespace tessera::test
