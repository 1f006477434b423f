#pragma once

#include <stdexcept>
#include <string>

namespace tessera {

// Classifies an error. Tests and callers compare the code; the text of the error is for people.
enum class ErrorCode {
  InvalidArgument,  // the caller asked for something impossible: a usage error
  BadInput,         // a file or a matrix breaks the rules of its format
  LimitExceeded,    // a count or a word does not fit the type or the memory that must hold it
  NoSolution,       // there is no plan, or the buckets cannot hold the pattern
  CheckFailed,      // a self-check found that memory changed by itself
  Internal          // the library broke its own invariant; never the caller's fault
};

// Returns the name of a code as text for people, for example "invalid argument" or "bad input".
std::string to_string(ErrorCode code);

// The only exception type that the library throws itself. The message names the fault, its place,
// the legal range and the remedy.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

// Throws Error{InvalidArgument}.
[[noreturn]] void throw_invalid(const std::string& message);

// Throws Error{Internal} with the condition, the file and the line. TESSERA_ASSERT calls it.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace tessera

// Throws Error{Internal} if `condition` is false. It checks an invariant of the library and is
// active in every build; it is used outside inner loops only.
#define TESSERA_ASSERT(condition) \
  ((condition) ? void(0) : ::tessera::assertion_failed(#condition, __FILE__, __LINE__))
