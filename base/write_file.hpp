#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"

namespace tessera {

// The rules of write_file (file.hpp), and its companions. The bytes go to a new file beside the
// target, which is then renamed. A file that is replaced passes its permissions on; a symbolic link
// is followed and stays; a device or a pipe is written to directly. Remainders of processes that
// were killed while they wrote are removed from the folder.

// A file or an output could not be written: the disk is full, or a permission is missing. Its code
// is InvalidArgument; programs tell it from a mistake on the command line by its type.
class CannotWrite : public Error {
 public:
  explicit CannotWrite(const std::string& message) : Error(ErrorCode::InvalidArgument, message) {}
};

// Takes the next bytes of a file. Throws CannotWrite.
using WritePiece = std::function<void(std::string_view bytes)>;

// Writes a file by the rules of write_file, but in the pieces that `produce` passes on, for files
// that are larger than the memory they may take. If `produce` throws, the new file is removed and
// an old one is kept.
void write_file_in_pieces(const std::string& path,
                          const std::function<void(const WritePiece& write)>& produce,
                          ForceToDisk force = ForceToDisk::Yes);

// Checks, without a change to any file, that write_file(path) can begin. Programs call it before
// work that takes long. Throws Error{InvalidArgument} with the path and the reason if the folder
// is missing or not writable, or if `path` names a folder or a file that must not be changed.
void check_writable(const std::string& path);

// Checks that a folder exists and is writable, or that it can be created. Throws
// Error{InvalidArgument} with the path and the reason if it cannot.
void check_folder_writable(const std::string& folder);

// Returns the absolute path, without links, of the file that write_file(path) makes or replaces. It
// need not exist. Returns no value if it cannot be found out, and for a device or a pipe, which is
// written to directly.
std::optional<std::string> file_to_write(const std::string& path);

// Checks that write_file of `name` in `folder`, which exists, makes or replaces a plain file of
// that folder. Throws CannotWrite with the reason if the name or a link leads out of the folder,
// even if the end of the link does not exist, and if a pipe, a device or a folder has that name.
void check_stays_inside(const std::string& folder, const std::string& name);

// Removes the unfinished files of all calls of write_file that run now. It is for handlers of
// signals that end the process next, and calls only functions that are allowed in handlers.
void remove_unfinished_files() noexcept;

}  // namespace tessera
