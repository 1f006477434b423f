#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/io/array.hpp"
#include "tessera/io/npz.hpp"
#include "tessera/io/write.hpp"
#include "tessera/tools/exit_code.hpp"
#include "tessera/tools/inputs.hpp"
#include "tessera/tools/internal/command_line.hpp"
#include "tessera/tools/internal/layer_options.hpp"
#include "tessera/tools/tessera/commands.hpp"

namespace tessera::tools {
namespace {

struct ConvertArguments {
  std::string from, to, tensor = "weight";
  BlockShape block;
};

// A dense file has 8 bytes per element.
constexpr std::int64_t kMostPlaces = std::int64_t{1} << 28;

Matrix<double> dense(const sparse::Csr<double>& matrix) {
  if (matrix.cols != 0 && matrix.rows > kMostPlaces / matrix.cols)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} x {} is too large for a dense file, which holds at most {} "
                            "elements; write .npz or .mtx",
                            matrix.rows, matrix.cols, kMostPlaces));
  return sparse::to_dense(matrix);
}

std::string bytes_of(const sparse::Csr<double>& matrix, const ConvertArguments& a) {
  std::string ending = std::filesystem::path(a.to).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return char(std::tolower(c)); });
  if (ending == ".smtx") return io::write_smtx(matrix);
  if (ending == ".mtx") return io::write_mtx(matrix);
  if (ending == ".npz") return io::write_npz(in_whole_blocks(matrix, a.block));
  if (ending == ".npy") {
    const Matrix<double> all = dense(matrix);
    return io::write_npy(all.view());
  }
  if (ending == ".safetensors") {
    const Matrix<double> all = dense(matrix);
    return io::write_safetensors(all.view(), a.tensor);
  }
  throw Error(
      ErrorCode::InvalidArgument,
      fmt::format(
          "{}: the file name must end in .smtx (pattern only), .mtx, .npz, .npy or .safetensors",
          a.to));
}

int convert(const ConvertArguments& a) {
  const io::ReadMatrix file = load_weights(a.from);
  write_file(a.to, bytes_of(file.matrix, a));
  print_text(fmt::format("{}: {} x {}, {} stored{}\n", a.to, file.matrix.rows, file.matrix.cols,
                         file.matrix.blocks(),
                         file.has_values ? "" : "; pattern only: all values are 1"));
  return kOk;
}

}  // namespace

void add_convert_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command = app.add_subcommand("convert", "Converts weights to another file format.");
  command->footer(std::string(internal::kExitCodes) +
                  "\nExample: tessera convert weights.smtx weights.npz");
  const auto a = std::make_shared<ConvertArguments>();
  command->add_option("from", a->from, "file of weights, in any format that --matrix reads")
      ->required();
  internal::require_writable_file(
      *command->add_option("to", a->to, "file to write; its name's ending selects the format")
           ->required());
  internal::add_block_option(*command, a->block);
  command->add_option("--tensor", a->tensor, "name of the tensor in a .safetensors file")
      ->capture_default_str();
  command->callback([a, &run] { run = [a] { return convert(*a); }; });
}

}  // namespace tessera::tools
