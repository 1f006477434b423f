#include "tessera/tools/exit_code.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/io/write.hpp"

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
    return fail(program, "this computer does not have enough memory for the run", kInternal);
  } catch (const std::exception& error) {
    return fail(program, error.what(), kInternal);
  }
}

void print_results(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0)
    throw Error(ErrorCode::Internal, "results could not be written to standard output");
}

void write_results(const std::string& path, const std::string& text) {
  if (path.empty()) return print_results(text);
  std::FILE* file = std::fopen(path.c_str(), "wb");
  bool written = file != nullptr;
  if (written) written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr && std::fclose(file) != 0) written = false;
  if (!written)
    throw Error(ErrorCode::Internal,
                fmt::format("{}: results could not be written: {}", path, std::strerror(errno)));
}

void write_folder(const std::string& folder,
                  const std::vector<std::pair<std::string, std::string>>& files) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{}: the folder cannot be created: {}", folder, failed.message()));
  for (const auto& [name, bytes] : files)
    write_file((std::filesystem::path(folder) / name).string(), bytes);
}

}  // namespace tessera::tools
