#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/io/array.hpp"
#include "tessera/io/mtx_pattern.hpp"
#include "tessera/io/npz.hpp"
#include "tessera/io/read_options.hpp"
#include "tessera/io/stored_type.hpp"
#include "tessera/io/write.hpp"
#include "tessera/tools/commands/commands.hpp"
#include "tessera/tools/options/command_line.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/options/inputs.hpp"
#include "tessera/tools/options/layer_options.hpp"
#include "tessera/tools/options/numbers.hpp"
#include "tessera/tools/options/paths.hpp"

namespace tessera::tools {
namespace {

struct ConvertArguments {
  std::string from, to, tensor = "weight";
  BlockShape block;
  bool sum_duplicates = false;
  std::int64_t memory_mib = 0;  // 0: not given

  sparse::Duplicates duplicates() const {
    return sum_duplicates ? sparse::Duplicates::Sum : sparse::Duplicates::Refuse;
  }
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

// Returns the ending of a file's name in lower case.
std::string ending_of(const std::string& path) {
  std::string ending = std::filesystem::path(path).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return char(std::tolower(c)); });
  return ending;
}

std::string bytes_of(const io::ReadMatrix& file, io::ElementType type, const ConvertArguments& a) {
  const sparse::Csr<double>& matrix = file.matrix;
  const std::string ending = ending_of(a.to);
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

// `has_values` is about the file that was read.
void print_written(const ConvertArguments& a, std::int64_t rows, std::int64_t cols,
                   std::int64_t stored, bool has_values) {
  print_text(fmt::format("{}: {} x {}, {} stored{}\n", a.to, rows, cols, stored,
                         !has_values                  ? "; pattern only: all values are 1"
                         : ending_of(a.to) == ".smtx" ? "; pattern only: its values are left out"
                                                      : ""));
}

// Writes the pattern of a file without the matrix in memory. A file that declares too much is one
// of bad input, as it is for load_weights().
int convert_pattern(const ConvertArguments& a) {
  io::PatternOptions options{.duplicates = a.duplicates()};
  if (a.memory_mib > 0) options.memory = a.memory_mib << 20;
  try {
    io::MtxPattern pattern(a.from, options);
    require_sizes(a.from, pattern.rows(), pattern.cols());
    const std::int64_t stored = pattern.write_smtx(a.to);
    print_written(a, pattern.rows(), pattern.cols(), stored, pattern.has_values());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::LimitExceeded) throw;
    throw Error(ErrorCode::BadInput, error.what());
  }
  return kOk;
}

int convert(const ConvertArguments& a) {
  if (ending_of(a.from) == ".mtx" && ending_of(a.to) == ".smtx") return convert_pattern(a);
  if (a.memory_mib > 0)
    throw Error(ErrorCode::InvalidArgument,
                "--memory: only a conversion from .mtx to .smtx goes over the file in passes; omit "
                "the option");
  const io::ReadMatrix file =
      load_weights(a.from, {.duplicates = a.duplicates(), .keeps_order = false});
  write_file(a.to, bytes_of(file, io::stored_type(a.from), a));
  print_written(a, file.matrix.rows, file.matrix.cols, file.matrix.blocks(), file.has_values);
  return kOk;
}

// Throws CLI::ValidationError for options that change nothing for these two files.
void refuse_options_without_effect(const CLI::App& command, const ConvertArguments& a) {
  const auto refuse = [&](const char* option, const std::string& ending,
                          std::initializer_list<std::string_view> legal, const char* why) {
    if (command.count(option) > 0 && std::ranges::find(legal, ending) == legal.end())
      throw CLI::ValidationError(option, fmt::format("{}; omit it", why));
  };
  refuse("--block-size", ending_of(a.to), {".npz"}, "is stored in .npz files only");
  refuse("--tensor", ending_of(a.to), {".safetensors"}, "names a tensor of a .safetensors file");
  refuse("--sum-duplicates", ending_of(a.from), {".mtx", ".npz"},
         "is for .mtx and .npz files; others give no place twice");
}

}  // namespace

void add_convert_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command = app.add_subcommand(
      "convert",
      "Converts weights to another file format. Values keep their type: half, float or double; a "
      "pattern stays a pattern in .mtx.");
  command->footer(std::string(kExitCodes) + "\nExample: tessera convert weights.smtx weights.npz");
  const auto a = std::make_shared<ConvertArguments>();
  command->add_option("from", a->from, "file of weights, in any format that --matrix reads")
      ->required();
  require_writable_file(
      *command->add_option("to", a->to, "file to write; its name's ending selects the format")
           ->required());
  add_block_option(*command, a->block);
  command->add_option("--tensor", a->tensor, "name of the tensor in a .safetensors file")
      ->capture_default_str();
  command->add_flag(
      "--sum-duplicates", a->sum_duplicates,
      "add up places that a .mtx or .npz file gives twice, which is an error otherwise");
  require_whole(
      command->add_option("--memory", a->memory_mib,
                          "most memory, in MiB, for a conversion from .mtx to .smtx; a file whose "
                          "columns do not fit in it is read several times (default: 512)"),
      64, 1 << 20);
  command->callback([command, a, &run] {
    refuse_options_without_effect(*command, *a);
    run = [a] { return convert(*a); };
  });
}

}  // namespace tessera::tools
