#pragma once

#include <string>

#include "tessera/tools/run/arguments.hpp"

// The options of `tessera run` about its weights and operands.
namespace tessera::tools::internal {

// The values of the three options of a weighted area, until all options are read.
struct AreaText {
  std::string begin = "{0,0}", end = "{0,0}";
  double weight = 1;
};

// Add --pattern and the weighted area; --values, --input and --output-gradient; the files of
// encoded weights; and, for --static, what PopLibs' static_sparse_matmul has besides, with
// --device-type.
void add_pattern_options(CLI::App& app, Arguments& arguments, AreaText& area);
void add_operand_options(CLI::App& app, Arguments& arguments);
void add_bucket_options(CLI::App& app, Arguments& arguments);
void add_poplibs_options(CLI::App& app, Arguments& arguments);

// Checks and completes the values of these options when all are read. Throws CLI::ValidationError.
void check_weights_options(const CLI::App& app, const AreaText& area, Arguments& arguments);

}  // namespace tessera::tools::internal
