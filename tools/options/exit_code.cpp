#include "tessera/tools/options/exit_code.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>

#include "tessera/base/error.hpp"
#include "tessera/base/printable.hpp"
#include "tessera/base/write_file.hpp"

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
    case ErrorCode::CheckFailed:
      return kCheckFailed;
    case ErrorCode::Internal:
      return kInternal;
  }
  return kInternal;
}

std::string program_name = "tessera";

int fail(const char* program, const std::string& message, int code) {
  print_message(fmt::format("{}: {}\n", program, message));
  return code;
}

// Opens /dev/null for standard streams that the caller has closed. A file that is opened later
// would else get the number of the stream, and with it the messages. stdout is opened for reading,
// so that results which cannot be written are still an error.
void fill_closed_streams() {
  for (const int stream : {0, 1, 2})
    if (::fcntl(stream, F_GETFD) == -1 &&
        ::open("/dev/null", stream == 2 ? O_WRONLY : O_RDONLY) < 0)
      return;
}

void refuse_to_write(const std::string& path, const std::string& why) {
  throw CannotWrite(fmt::format("{}: {}", printable(path), why));
}

}  // namespace

int guarded_main(const char* program, const std::function<int()>& body) {
  program_name = program;
  fill_closed_streams();
  for (const int signal : {SIGXFSZ, SIGPIPE}) std::signal(signal, SIG_IGN);
  try {
    return body();
  } catch (...) {
    return print_failure(program);
  }
}

int print_failure(const char* program) {
  try {
    throw;
  } catch (const CannotWrite& error) {
    return fail(program, error.what(), kInternal);
  } catch (const FileTooLarge& error) {
    return fail(program, error.what(), kBadInput);
  } catch (const Error& error) {
    return fail(program, error.what(), exit_code_of(error.code()));
  } catch (const std::bad_alloc&) {
    return fail(program, "this computer does not have enough memory for the run", kInternal);
  } catch (const std::exception& error) {
    return fail(program, error.what(), kInternal);
  }
}

void print_message(const std::string& text) {
  const std::string safe = printable(text, LineEnds::Keep);
  std::fwrite(safe.data(), 1, safe.size(), stderr);
  std::fflush(stderr);
}

void print_warning(const std::string& text) {
  print_message(fmt::format("{}: warning: {}\n", program_name, text));
}

void print_results(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0)
    refuse_to_write("standard output",
                    std::string("results could not be written: ") + std::strerror(errno));
}

void print_text(const std::string& text) { print_results(printable(text, LineEnds::Keep)); }

void write_results(const std::string& path, const std::string& text) {
  path.empty() ? print_results(text) : write_file(path, text);
}

void write_folder(const std::string& folder,
                  const std::vector<std::pair<std::string, std::string>>& files) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) refuse_to_write(folder, "the folder cannot be created: " + failed.message());
  for (const auto& [name, bytes] : files) {
    check_stays_inside(folder, name);
    write_file((std::filesystem::path(folder) / name).string(), bytes);
  }
}

}  // namespace tessera::tools
