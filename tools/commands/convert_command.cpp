#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/io/mtx_pattern.hpp"
#include "tessera/io/read_options.hpp"
#include "tessera/io/stored_type.hpp"
#include "tessera/io/write_matrix.hpp"
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
  std::string from, to;
  io::WriteOptions form;
  bool sum_duplicates = false;
  std::int64_t memory_mib = 0;  // 0: not given

  sparse::Duplicates duplicates() const {
    return sum_duplicates ? sparse::Duplicates::Sum : sparse::Duplicates::Refuse;
  }
};

// `has_values` is about the file that was read.
void print_written(const ConvertArguments& a, std::int64_t rows, std::int64_t cols,
                   std::int64_t stored, bool has_values) {
  print_text(fmt::format("{}: {} x {}, {} stored{}\n", a.to, rows, cols, stored,
                         !has_values ? "; pattern only: all values are 1"
                         : io::ending_of(a.to) == ".smtx"
                             ? "; pattern only: its values are left out"
                             : ""));
}

// Writes the pattern of a file without the matrix in memory. A file that declares too much is one
// of bad input, as it is for io::read_weights().
int convert_pattern(const ConvertArguments& a) {
  io::PatternOptions options{.duplicates = a.duplicates()};
  if (a.memory_mib > 0) options.memory = a.memory_mib << 20;
  try {
    io::MtxPattern pattern(a.from, options);
    io::require_sizes(a.from, pattern.rows(), pattern.cols());
    const std::int64_t stored = pattern.write_smtx(a.to);
    print_written(a, pattern.rows(), pattern.cols(), stored, pattern.has_values());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::LimitExceeded) throw;
    throw Error(ErrorCode::BadInput, error.what());
  }
  return kOk;
}

int convert(const ConvertArguments& a) {
  if (io::ending_of(a.from) == ".mtx" && io::ending_of(a.to) == ".smtx") return convert_pattern(a);
  if (a.memory_mib > 0)
    throw Error(ErrorCode::InvalidArgument,
                "--memory: only a conversion from .mtx to .smtx goes over the file in passes; omit "
                "the option");
  const io::ReadMatrix file =
      io::read_weights(a.from, {.duplicates = a.duplicates(), .keeps_order = false});
  write_file(a.to, io::matrix_bytes(a.to, file, io::stored_type(a.from), a.form));
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
  refuse("--block-size", io::ending_of(a.to), {".npz"}, "is stored in .npz files only");
  refuse("--tensor", io::ending_of(a.to), {".safetensors"},
         "names a tensor of a .safetensors file");
  refuse("--sum-duplicates", io::ending_of(a.from), {".mtx", ".npz"},
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
  add_block_option(*command, a->form.block);
  command->add_option("--tensor", a->form.tensor, "name of the tensor in a .safetensors file")
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
