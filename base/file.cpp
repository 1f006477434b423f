#include "tessera/base/file.hpp"

#include "tessera/base/input_file.hpp"

namespace tessera {

void throw_fault_of_file(ErrorCode code, const std::string& message) {
  if (code == ErrorCode::LimitExceeded) throw FileTooLarge(message);
  throw Error(code, message);
}

std::string read_file(const std::string& path) {
  const InputFile file(path);
  std::string text(static_cast<std::size_t>(file.bytes()), '\0');
  // The file may have been truncated since its length was read.
  text.resize(static_cast<std::size_t>(file.read(0, file.bytes(), text.data())));
  return text;
}

}  // namespace tessera
