#pragma once

#include <stdexcept>
#include <string>

namespace tessera {

// What kind of thing went wrong. Tests and callers look at the code, people read the text.
enum class ErrorCode {
  InvalidArgument,  // the caller asked for something that cannot be: a usage error
  BadInput,         // a file or a matrix breaks the rules of its format
  LimitExceeded,    // a count or a word does not fit the type or the memory that must hold it
  NoSolution,       // there is no plan, or the buckets cannot hold the pattern
  CheckFailed,      // a self-check found that memory changed by itself
  Internal          // a broken promise of ours; never the caller's fault
};

// "invalid argument", "bad input" and so on, for people.
std::string to_string(ErrorCode code);

// The one exception type of the library. The message says what, where, the legal range, the remedy.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

// Throws Error{Internal} with the place of the call; behind TESSERA_ASSERT.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace tessera

// A promise of ours, checked in every build: these stand outside inner loops.
#define TESSERA_ASSERT(condition) \
  ((condition) ? void(0) : ::tessera::assertion_failed(#condition, __FILE__, __LINE__))
