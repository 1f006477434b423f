#include "tessera/tools/commands/peer_product.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/tools/options/interrupt.hpp"

namespace tessera::tools {
namespace {

// Reads a matrix and its operands, runs a pass as often as our own timing does, writes the result
// and prints the times. SciPy has no product at the places of a matrix; the gradient is NumPy's
// einsum over gathered rows, some places at a time, so that the gathered rows stay in the cache.
constexpr const char* kScript = R"(import sys, time
import numpy, scipy.sparse
folder, rows, cols, z = sys.argv[1], *map(int, sys.argv[2:5])
read = lambda name, kind: numpy.fromfile(folder + '/' + name, kind)
matrix = scipy.sparse.csr_matrix((read('values', 'f4'), read('col', 'i4'), read('row_begin', 'i4')), (rows, cols))
operand = read('in', 'f4').reshape(cols, z)
if sys.argv[5] == 'gradient':
    grad = read('grad', 'f4').reshape(rows, z)
    row = numpy.repeat(numpy.arange(rows), numpy.diff(matrix.indptr))
    count = max(1, 2**16 // z)
    def run():
        values = numpy.empty(matrix.nnz, 'f4')
        for begin in range(0, matrix.nnz, count):
            places = slice(begin, begin + count)
            numpy.einsum('ij,ij->i', grad[row[places]], operand[matrix.indices[places]], out=values[places])
        return values
else:
    run = lambda: matrix @ operand
result = run()
times = []
while len(times) < 3 or (sum(times) < 0.1 and len(times) < 25):
    begin = time.perf_counter()
    result = run()
    times.append(time.perf_counter() - begin)
result.astype('f4').tofile(folder + '/out')
print(*times)
)";

// A folder that is removed with its files.
class WorkFolder {
 public:
  WorkFolder() {
    std::error_code failed;
    const auto folder = std::filesystem::temp_directory_path(failed);
    if (failed)
      throw Error(ErrorCode::InvalidArgument,
                  "there is no folder for temporary files; name one in TMPDIR");
    std::string name = (folder / "tessera-peer-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw Error(ErrorCode::InvalidArgument, "cannot make the folder " + name + " for SciPy");
    path_ = name;
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  ~WorkFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }

  template <class T>
  void write(const std::string& name, const T* data, std::size_t count) const {
    std::ofstream file(path_ + "/" + name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(data), std::streamsize(count * sizeof(T)));
    file.close();
    if (!file) throw Error(ErrorCode::InvalidArgument, "cannot write " + path_ + "/" + name);
  }

 private:
  std::string path_;
};

// Starts a shell command whose output goes to `output`, and returns its process, or -1. The process
// is killed when this program ends.
pid_t start(const std::string& command, int output) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::dup2(output, STDOUT_FILENO);
  ::execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
  ::_exit(127);
}

// Returns the text that can be read until the other end is closed. Kills the process after Ctrl-C
// or SIGTERM.
std::string read_all(int from, pid_t child) {
  constexpr int kWaitMilliseconds = 20;
  std::string text;
  char buffer[4096];
  for (ssize_t count = 1; count > 0;) {
    if (is_interrupted()) ::kill(child, SIGKILL);
    pollfd ready{from, POLLIN, 0};
    if (::poll(&ready, 1, kWaitMilliseconds) <= 0) continue;
    count = ::read(from, buffer, sizeof buffer);
    if (count > 0) text.append(buffer, std::size_t(count));
  }
  return text;
}

// Returns what a shell command prints, or no value if it fails or is interrupted.
std::optional<std::string> output_of(const std::string& command) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  const pid_t child = start(command, ends[1]);
  ::close(ends[1]);
  const std::string text = child < 0 ? "" : read_all(ends[0], child);
  ::close(ends[0]);
  int status = 0;
  const bool ended = child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
  return ended ? std::optional(text) : std::nullopt;
}

// Returns the folder of the running program.
std::string program_folder() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path().string();
}

// Returns a word of a shell's command line.
std::string quoted(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

// The operands of a pass and its result. A product has no `grad`.
struct PassOperands {
  const sparse::Csr<float>& matrix;
  const Matrix<float>& in;
  const Matrix<float>* grad = nullptr;
  std::span<float> out;
};

// Runs a program that reads a pass from the files of a folder, writes the result there, and prints
// the seconds of its runs. `more` are arguments before the last one.
std::optional<study::MedianTimes> result_of(const std::string& program, const std::string& more,
                                            const WorkFolder& folder, const PassOperands& pass) {
  const sparse::Csr<float>& matrix = pass.matrix;
  const std::vector<std::int32_t> row_begin(matrix.row_begin.begin(), matrix.row_begin.end());
  folder.write("row_begin", row_begin.data(), row_begin.size());
  folder.write("col", matrix.col.data(), matrix.col.size());
  folder.write("values", matrix.values.data(), matrix.values.size());
  folder.write("in", pass.in.elements().data(), pass.in.elements().size());
  if (pass.grad != nullptr)
    folder.write("grad", pass.grad->elements().data(), pass.grad->elements().size());
  const auto text = output_of("exec " + program + " " + quoted(folder.path()) + " " +
                              std::to_string(matrix.rows) + " " + std::to_string(matrix.cols) +
                              " " + std::to_string(pass.in.cols()) + more +
                              (pass.grad != nullptr ? " gradient" : " product") + " 2>/dev/null");
  if (!text) return std::nullopt;
  std::vector<host::HostTimes> times;
  std::istringstream numbers(*text);
  for (double seconds = 0; numbers >> seconds;) {
    times.emplace_back();
    times.back().seconds = seconds;
  }
  std::ifstream result(folder.path() + "/out", std::ios::binary);
  result.read(reinterpret_cast<char*>(pass.out.data()),
              std::streamsize(pass.out.size() * sizeof(float)));
  if (times.empty() || !result) return std::nullopt;
  return study::median_of(std::move(times));
}

std::optional<study::MedianTimes> eigen_pass(const PassOperands& pass, int threads) {
  const std::string program = program_folder() + "/tessera_peer_eigen";
  std::error_code unknown;
  if (!std::filesystem::exists(program, unknown)) return std::nullopt;
  return result_of(quoted(program), " " + std::to_string(threads), WorkFolder(), pass);
}

std::optional<study::MedianTimes> scipy_pass(const PassOperands& pass) {
  const WorkFolder folder;
  folder.write("script.py", kScript, std::strlen(kScript));
  // Packages belong to the system's interpreter, which need not be the first in PATH.
  return result_of("\"$(command -pv python3)\" " + quoted(folder.path() + "/script.py"), "", folder,
                   pass);
}

}  // namespace

std::optional<study::MedianTimes> eigen_product(const sparse::Csr<float>& matrix,
                                                const Matrix<float>& in, Matrix<float>& out,
                                                int threads) {
  return eigen_pass({.matrix = matrix, .in = in, .out = out.elements()}, threads);
}

std::optional<study::MedianTimes> scipy_product(const sparse::Csr<float>& matrix,
                                                const Matrix<float>& in, Matrix<float>& out) {
  return scipy_pass({.matrix = matrix, .in = in, .out = out.elements()});
}

std::optional<study::MedianTimes> eigen_gradient(sparse::Csr<float>& gradient,
                                                 const Matrix<float>& grad, const Matrix<float>& in,
                                                 int threads) {
  return eigen_pass({.matrix = gradient, .in = in, .grad = &grad, .out = gradient.values}, threads);
}

std::optional<study::MedianTimes> scipy_gradient(sparse::Csr<float>& gradient,
                                                 const Matrix<float>& grad,
                                                 const Matrix<float>& in) {
  return scipy_pass({.matrix = gradient, .in = in, .grad = &grad, .out = gradient.values});
}

}  // namespace tessera::tools
