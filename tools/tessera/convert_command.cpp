#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <type_traits>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/io/array.hpp"
#include "tessera/io/duplicates.hpp"
#include "tessera/io/npz.hpp"
#include "tessera/io/stored_type.hpp"
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
  bool sum_duplicates = false;
};

// A dense file has 8 bytes per element.
constexpr std::int64_t kMostPlaces = std::int64_t{1} << 28;

template <class T>
Matrix<T> dense(const sparse::Csr<double>& matrix) {
  if (matrix.cols != 0 && matrix.rows > kMostPlaces / matrix.cols)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} x {} is too large for a dense file, which holds at most {} "
                            "elements; write .npz or .mtx",
                            matrix.rows, matrix.cols, kMostPlaces));
  const Matrix<double> all = sparse::to_dense(matrix);
  Matrix<T> typed(all.rows(), all.cols());
  std::ranges::transform(all.elements(), typed.elements().begin(), [](double value) {
    if constexpr (std::is_same_v<T, Half>)
      return Half(float(value));
    else
      return T(value);
  });
  return typed;
}

// Calls use(zero) with a zero of the type that a file gets for numbers of a type.
template <class Use>
std::string with_element_type(io::ElementType type, Use&& use) {
  switch (type) {
    case io::ElementType::F16:
      return use(Half());
    case io::ElementType::F32:
    case io::ElementType::BF16:  // no format that is written here has it
      return use(0.0F);
    default:
      return use(0.0);
  }
}

// SciPy has no sparse matrices of halves, so they become floats.
std::string npz_bytes(const sparse::Csr<double>& matrix, io::ElementType type,
                      const ConvertArguments& a) {
  const sparse::Csr<double> blocks = in_whole_blocks(matrix, a.block);
  return with_element_type(type, [&]<class T>(T) {
    if constexpr (std::is_same_v<T, double>)
      return io::write_npz(blocks);
    else
      return io::write_npz(sparse::cast<float>(blocks));
  });
}

std::string bytes_of(const io::ReadMatrix& file, io::ElementType type, const ConvertArguments& a) {
  const sparse::Csr<double>& matrix = file.matrix;
  std::string ending = std::filesystem::path(a.to).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return char(std::tolower(c)); });
  if (ending == ".smtx") return io::write_smtx(matrix);
  if (ending == ".mtx")
    return io::write_mtx(matrix, file.has_values ? io::MtxField::Real : io::MtxField::Pattern);
  if (ending == ".npz") return npz_bytes(matrix, type, a);
  if (ending == ".npy")
    return with_element_type(type, [&]<class T>(T) {
      const Matrix<T> all = dense<T>(matrix);
      return io::write_npy(all.view());
    });
  if (ending == ".safetensors")
    return with_element_type(type, [&]<class T>(T) {
      const Matrix<T> all = dense<T>(matrix);
      return io::write_safetensors(all.view(), a.tensor);
    });
  throw Error(
      ErrorCode::InvalidArgument,
      fmt::format(
          "{}: the file name must end in .smtx (pattern only), .mtx, .npz, .npy or .safetensors",
          a.to));
}

// Any error of the file is one of bad input, as it is for load_weights().
io::ReadMatrix load_summed(const std::string& path) {
  try {
    return io::read_matrix(path, sparse::Duplicates::Sum);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Internal) throw;
    throw Error(ErrorCode::BadInput, error.what());
  }
}

int convert(const ConvertArguments& a) {
  const io::ReadMatrix file = a.sum_duplicates ? load_summed(a.from) : load_weights(a.from);
  write_file(a.to, bytes_of(file, io::stored_type(a.from), a));
  print_text(fmt::format("{}: {} x {}, {} stored{}\n", a.to, file.matrix.rows, file.matrix.cols,
                         file.matrix.blocks(),
                         file.has_values ? "" : "; pattern only: all values are 1"));
  return kOk;
}

}  // namespace

void add_convert_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command = app.add_subcommand(
      "convert",
      "Converts weights to another file format. Values keep their type: half, float or double; a "
      "pattern stays a pattern in .mtx.");
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
  command->add_flag(
      "--sum-duplicates", a->sum_duplicates,
      "add up places that a .mtx or .npz file of coordinates gives twice, which is an "
      "error otherwise");
  command->callback([a, &run] { run = [a] { return convert(*a); }; });
}

}  // namespace tessera::tools
