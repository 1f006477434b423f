#include "tessera/tools/exit_code.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>

#include "tessera/base/error.hpp"

namespace tessera::tools {
namespace {

int exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument:
      return kUsage;
    case ErrorCode::BadInput:
      return kBadInput;
    case ErrorCode::LimitExceeded:
    case ErrorCode::NoSolution:
      return kNothingFits;
    case ErrorCode::Internal:
      return kInternal;
  }
  return kInternal;
}

int fail(const char* program, const char* message, int code) {
  fmt::print(stderr, "{}: {}\n", program, message);
  return code;
}

}  // namespace

int guarded_main(const char* program, const std::function<int()>& body) {
  try {
    return body();
  } catch (const Error& error) {
    return fail(program, error.what(), exit_code_of(error.code()));
  } catch (const std::bad_alloc&) {
    return fail(program, "this computer has not enough memory for the run", kInternal);
  } catch (const std::exception& error) {
    return fail(program, error.what(), kInternal);
  }
}

void print_results(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0)
    throw Error(ErrorCode::Internal, "results could not be written to standard output");
}

}  // namespace tessera::tools
