#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <exception>

namespace tessera::test {

// False with ThreadSanitizer, which does not follow the threads of a child of fork().
#if defined(__clang__)  // the others do not know what __has_feature is
#define TESSERA_SANITIZES_THREADS __has_feature(thread_sanitizer)
#elif defined(__SANITIZE_THREAD__)
#define TESSERA_SANITIZES_THREADS 1
#else
#define TESSERA_SANITIZES_THREADS 0
#endif
#if TESSERA_SANITIZES_THREADS
inline constexpr bool kChildrenMayStartThreads = false;
#else
inline constexpr bool kChildrenMayStartThreads = true;
#endif

// Calls fork() and then body() in the child, which ends the child within `seconds`, by a signal if
// it takes longer. Returns 0 if body() returned true, 1 if it returned false or threw, and 128 +
// the signal that ended the child: 142 if it hung.
template <class Body>
int in_child(const Body& body, unsigned seconds = 60) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(seconds);
    int code = 1;
    try {
      code = body() ? 0 : 1;
    } catch (const std::exception&) {
    }
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace tessera::test
