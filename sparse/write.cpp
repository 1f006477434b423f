#include "tessera/sparse/write.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "tessera/base/error.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::inline v0::sparse {
namespace {

// to_chars writes the shortest text that reads back as the same number, in any locale.
template <class Number>
void append(std::string& text, Number number, char separator) {
  char buffer[32];  // -2.2250738585072014e-308 takes 24
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer) - 1, number).ptr;
  *end = separator;
  text.append(buffer, end + 1);
}

// A file that is open for writing, or nothing. Removes itself unless it was kept.
class NewFile {
 public:
  explicit NewFile(const std::string& target) : target_(target) {
    // A run that was killed may have left a file of this process's number behind.
    for (int attempt = 0; file_ < 0 && attempt < 100; ++attempt) {
      name_ = fmt::format("{}.{}-{}.new", target, ::getpid(), attempt);
      file_ = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (file_ < 0 && errno != EEXIST) break;
    }
    if (file_ < 0) refuse("cannot create a file beside it");
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (file_ >= 0) ::close(file_);
    if (!kept_) ::unlink(name_.c_str());
  }

  void write(const std::string& text) {
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t n = ::write(file_, text.data() + done, text.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) refuse("cannot be written");
      done += static_cast<std::size_t>(n);
    }
  }

  // On disk before the name is: after a crash there is the old file or the whole new one.
  void keep() {
    if (::fsync(file_) != 0) refuse("cannot be written to disk");
    const int file = file_;
    file_ = -1;
    if (::close(file) != 0) refuse("cannot be closed");
    if (std::rename(name_.c_str(), target_.c_str()) != 0) refuse("cannot be put in place");
    kept_ = true;
  }

 private:
  [[noreturn]] void refuse(const char* what) const {
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{}: {}: {}", target_, what, std::strerror(errno)));
  }

  std::string target_, name_;
  int file_ = -1;
  bool kept_ = false;
};

}  // namespace

void write_file(const std::string& path, const std::string& bytes) {
  NewFile file(path);
  file.write(bytes);
  file.keep();
}

template <class T>
std::string write_smtx(const Csr<T>& matrix) {
  const Csr<T> elements = with_block(matrix, {1, 1});
  std::string text = fmt::format("{}, {}, {}\n", elements.rows, elements.cols, elements.blocks());
  for (const std::int64_t begin : elements.row_begin) append(text, begin, ' ');
  text.back() = '\n';
  for (const std::int32_t col : elements.col) append(text, col, ' ');
  if (elements.col.empty())
    text += '\n';
  else
    text.back() = '\n';
  return text;
}

template <class T>
std::string write_mtx(const Csr<T>& matrix, MtxField field) {
  const Csr<T> elements = with_block(matrix, {1, 1});
  const bool has_values = field == MtxField::Real;
  std::string text =
      fmt::format("%%MatrixMarket matrix coordinate {} general\n{} {} {}\n",
                  has_values ? "real" : "pattern", elements.rows, elements.cols, elements.blocks());
  for (std::int64_t row = 0; row < elements.rows; ++row)
    for (std::int64_t k = elements.row_begin[row]; k < elements.row_begin[row + 1]; ++k) {
      append(text, row + 1, ' ');
      append(text, std::int64_t{elements.col[k]} + 1, has_values ? ' ' : '\n');
      if (has_values) append(text, elements.values[k], '\n');
    }
  return text;
}

template <class T>
void write_smtx_file(const std::string& path, const Csr<T>& matrix) {
  write_file(path, write_smtx(matrix));
}

template <class T>
void write_mtx_file(const std::string& path, const Csr<T>& matrix, MtxField field) {
  write_file(path, write_mtx(matrix, field));
}

template std::string write_smtx(const Csr<float>&);
template std::string write_smtx(const Csr<double>&);
template std::string write_mtx(const Csr<float>&, MtxField);
template std::string write_mtx(const Csr<double>&, MtxField);
template void write_smtx_file(const std::string&, const Csr<float>&);
template void write_smtx_file(const std::string&, const Csr<double>&);
template void write_mtx_file(const std::string&, const Csr<float>&, MtxField);
template void write_mtx_file(const std::string&, const Csr<double>&, MtxField);

}  // namespace tessera::inline v0::sparse
