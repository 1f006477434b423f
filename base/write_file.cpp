#include "tessera/base/write_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <tuple>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/internal/output_bytes.hpp"
#include "tessera/base/internal/unfinished_files.hpp"
#include "tessera/base/printable.hpp"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using internal::throw_cannot_write;

[[noreturn]] void refuse(const std::string& path, std::string_view what, int reason) {
  throw Error(ErrorCode::InvalidArgument, internal::output_fault(path, what, reason));
}

// Returns the path that a chain of symbolic links ends at, which need not exist.
std::string target_of(const std::string& path) {
  constexpr int kMostLinks = 40;  // as the system allows
  fs::path target = path;
  std::error_code failed;
  for (int links = 0; fs::is_symlink(fs::symlink_status(target, failed)); ++links) {
    if (links == kMostLinks) throw_cannot_write(path, "cannot be opened", ELOOP);
    const fs::path next = fs::read_symlink(target, failed);
    if (failed) throw_cannot_write(path, "cannot be opened", failed.value());
    target = next.is_absolute() ? next : target.parent_path() / next;
  }
  return target.string();
}

fs::path folder_of(const std::string& target) {
  const fs::path folder = fs::path(target).parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

void write_all(const internal::OpenFile& file, const std::string& path, std::string_view bytes) {
  if (const int reason = internal::write_bytes(file.get(), bytes))
    throw_cannot_write(path, "cannot be written", reason);
}

// A new file beside its target that is open for writing. The destructor removes it unless keep()
// has renamed it to the target.
class NewFile {
 public:
  NewFile(const std::string& path, std::string target)
      : path_(path),
        target_(std::move(target)),
        name_((folder_of(target_) / internal::unfinished_name()).string()),
        unfinished_(name_),
        file_(internal::create_unfinished(name_)) {
    if (!file_.is_open()) throw_cannot_write(path_, "cannot create a file in its folder", errno);
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (!is_kept_) ::unlink(name_.c_str());
  }

  void write(std::string_view bytes) { write_all(file_, path_, bytes); }

  // Gives the file the permissions and, where that is allowed, the owner of the file it replaces.
  void resemble(const struct stat& old) {
    struct stat now = {};
    const bool is_known = ::fstat(file_.get(), &now) == 0;
    if (!is_known || now.st_uid != old.st_uid || now.st_gid != old.st_gid)
      std::ignore = ::fchown(file_.get(), old.st_uid, old.st_gid);
    if (::fchmod(file_.get(), old.st_mode & 0777) != 0)
      throw_cannot_write(path_, "cannot keep its permissions", errno);
  }

  // Renames the file to its target. If the content is forced to disk first, the target is either
  // the old file or the whole new one after a crash of the system.
  void keep(ForceToDisk force) {
    if (force == ForceToDisk::Yes && ::fsync(file_.get()) != 0)
      throw_cannot_write(path_, "cannot be written to disk", errno);
    if (std::rename(name_.c_str(), target_.c_str()) != 0)
      throw_cannot_write(path_, "cannot be put in place", errno);
    is_kept_ = true;
    if (!file_.close()) throw_cannot_write(path_, "cannot be closed", errno);
  }

 private:
  const std::string path_, target_, name_;
  internal::Unfinished unfinished_;
  internal::OpenFile file_;
  bool is_kept_ = false;
};

std::optional<struct stat> status_of(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0) return status;
  return std::nullopt;
}

// Returns true for an open file of a process, a device or a pipe, which cannot be replaced. The
// names of open files are links that must not be followed: the file that they stand for would be
// replaced under a process that has it open.
bool is_direct(const std::string& path, const std::optional<struct stat>& status) {
  for (const char* start : {"/dev/fd/", "/dev/std", "/proc/"})
    if (path.starts_with(start)) return true;
  return status && !S_ISREG(status->st_mode) && !S_ISDIR(status->st_mode);
}

using Produce = std::function<void(const WritePiece& write)>;

void write_directly(const std::string& path, const Produce& produce) {
  internal::OpenFile file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!file.is_open()) throw_cannot_write(path, "cannot be opened", errno);
  produce([&](std::string_view bytes) { write_all(file, path, bytes); });
  if (!file.close()) throw_cannot_write(path, "cannot be closed", errno);
}

// Returns why a file that exists must not be replaced, as a code of the system; 0 if it may be.
int obstacle(const std::string& target, const struct stat& old) {
  if (S_ISDIR(old.st_mode)) return EISDIR;
  return ::access(target.c_str(), W_OK) == 0 ? 0 : errno;
}

// Returns whether a folder can be made inside this one; if not, errno says why. Permissions do not
// tell: in /proc the system user may write, but nothing can be made.
bool can_hold_folders(const fs::path& folder) {
  std::string probe = (folder / ".tessera-XXXXXX").string();
  if (::mkdtemp(probe.data()) == nullptr) return false;
  ::rmdir(probe.c_str());
  return true;
}

}  // namespace

void write_file(const std::string& path, const std::string& bytes, ForceToDisk force) {
  write_file_in_pieces(path, [&](const WritePiece& write) { write(bytes); }, force);
}

void write_file_in_pieces(const std::string& path, const Produce& produce, ForceToDisk force) {
  if (is_direct(path, status_of(path))) return write_directly(path, produce);
  const std::string target = target_of(path);
  const auto old = status_of(target);
  if (const int reason = old ? obstacle(target, *old) : 0)
    throw_cannot_write(path, "cannot be written", reason);
  internal::remove_dead_files(folder_of(target).string());
  NewFile file(path, target);
  produce([&](std::string_view bytes) { file.write(bytes); });
  if (old) file.resemble(*old);
  file.keep(force);
}

void check_writable(const std::string& path) {
  const auto status = status_of(path);
  if (is_direct(path, status)) {
    if (::access(path.c_str(), W_OK) != 0) refuse(path, "cannot be written", errno);
    return;
  }
  const std::string target = target_of(path);
  if (fs::path(target).filename().empty()) refuse(path, "names no file", status ? EISDIR : ENOENT);
  if (const int reason = status ? obstacle(target, *status) : 0)
    refuse(path, "cannot be written", reason);
  if (::access(folder_of(target).c_str(), W_OK | X_OK) != 0)
    refuse(path, "cannot create a file in its folder", errno);
  struct stat new_file = {};
  if (!status && ::lstat(target.c_str(), &new_file) != 0 && errno != ENOENT)
    refuse(path, "cannot be written", errno);
}

std::optional<std::string> file_to_write(const std::string& path) {
  if (is_direct(path, status_of(path))) return std::nullopt;
  std::error_code failed;
  try {
    const fs::path target = target_of(path);
    const fs::path folder = fs::canonical(folder_of(target.string()), failed);
    if (failed || target.filename().empty()) return std::nullopt;
    return (folder / target.filename()).string();
  } catch (const CannotWrite&) {  // links in a circle
    return std::nullopt;
  }
}

void check_stays_inside(const std::string& folder, const std::string& name) {
  const std::string path = (fs::path(folder) / name).string();
  const auto status = status_of(path);
  if (status && !S_ISREG(status->st_mode))
    throw CannotWrite(printable(path) + ": is no plain file; remove it or take another folder");
  std::error_code failed;
  const fs::path inside = fs::canonical(folder, failed);
  const auto file = file_to_write(path);
  if (failed || !file || fs::path(name).has_parent_path() ||
      fs::path(*file).parent_path() != inside)
    throw CannotWrite(printable(path) +
                      ": would be written outside the folder; remove the link or take another "
                      "folder");
}

void check_folder_writable(const std::string& folder) {
  const auto is_there = [&](const fs::path& path) {
    std::error_code failed;
    const bool exists = fs::exists(fs::symlink_status(path, failed));
    if (!exists && failed && failed != std::errc::no_such_file_or_directory &&
        failed != std::errc::not_a_directory)
      refuse(folder, "the folder cannot be created", failed.value());
    return exists;
  };
  const fs::path wanted = fs::path(folder).lexically_normal();
  fs::path nearest = wanted;
  while (!is_there(nearest) && nearest.has_relative_path()) nearest = nearest.parent_path();
  const bool is_new = nearest != wanted;
  if (nearest.empty()) nearest = ".";
  std::error_code failed;
  if (!fs::is_directory(nearest, failed)) refuse(folder, "the folder cannot be created", ENOTDIR);
  if (::access(nearest.c_str(), W_OK | X_OK) != 0)
    refuse(folder, "the folder cannot be written", errno);
  if (is_new && !can_hold_folders(nearest)) refuse(folder, "the folder cannot be created", errno);
}

}  // namespace tessera
