#include "tessera/base/error.hpp"

#include <fmt/format.h>

namespace tessera {

std::string to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument:
      return "invalid argument";
    case ErrorCode::BadInput:
      return "bad input";
    case ErrorCode::LimitExceeded:
      return "limit exceeded";
    case ErrorCode::NoSolution:
      return "no solution";
    case ErrorCode::CheckFailed:
      return "check failed";
    case ErrorCode::Internal:
      return "internal error";
  }
  return "unknown";
}

void throw_invalid(const std::string& message) { throw Error(ErrorCode::InvalidArgument, message); }

void assertion_failed(const char* condition, const char* file, int line) {
  throw Error(ErrorCode::Internal,
              fmt::format("broken promise `{}` at {}:{}", condition, file, line));
}

}  // namespace tessera
