#pragma once

#include <string>
#include <utility>

// Files that are being written beside their target, with names of one form. Such a file is locked
// by the process that writes it, and the system takes the lock away when that process ends. So a
// file of that form without a lock is a remainder of a process that was killed.
namespace tessera::internal {

// An open file that closes itself.
class OpenFile {
 public:
  explicit OpenFile(int file) : file_(file) {}
  OpenFile(OpenFile&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile();

  int get() const { return file_; }
  bool is_open() const { return file_ >= 0; }

  // Returns false, with errno set, if the system reports a late failure of writing.
  bool close();

 private:
  int file_;
};

// Returns a new name of this form, without a folder.
std::string unfinished_name();

// Creates and locks a file that does not exist yet. The result is not open, with errno set, if that
// fails.
OpenFile create_unfinished(const std::string& path);

// Removes the remainders of killed processes of this user from a folder.
void remove_dead_files(const std::string& folder);

// While it lives, remove_unfinished_files() removes the file of this path. If more than 16 files
// are being written, or if the path is very long, the file is left to remove_dead_files().
class Unfinished {
 public:
  explicit Unfinished(const std::string& path);
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished();

 private:
  int entry_ = -1;  // of the table of paths; -1: none
};

}  // namespace tessera::internal
