#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/problem.hpp"
#include "tessera/partitioner/saved_weights.hpp"
#include "tessera/sparse/block_stats.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/tools/run/arguments.hpp"

namespace tessera::tools {

// The weights of the layer that the command line describes.
struct Weights {
  sparse::CheckedCsr<float> matrix;  // in whole blocks, with values rounded to the layer's type
  std::int64_t rows = 0, cols = 0;   // of the layer; the padded matrix may be larger
  std::string source;                // description of the origin, for reports
  int scale_exponent = 0;            // values were multiplied by 2^scale_exponent (fit_range)
  std::vector<sparse::CheckedCsr<float>> further;  // of groups 1 and on: like `matrix`
  std::shared_ptr<const partitioner::SavedWeights> encoded = nullptr;  // the same, from a file

  // The elements of the file --matrix as it stores them; no value if there is no such file.
  std::optional<sparse::CheckedCsr<float>> of_file = std::nullopt;

  std::int64_t groups() const { return 1 + std::ssize(further); }

  // Returns the number of block rows of all groups that have no block.
  std::int64_t empty_rows() const;

  // Returns their share of all block rows.
  double share_of_empty_rows() const {
    return double(empty_rows()) / double(groups() * matrix->block_rows());
  }

  // Return the matrix of a group, and of every group.
  const sparse::CheckedCsr<float>& of_group(std::int64_t group) const {
    return group == 0 ? matrix : further[std::size_t(group) - 1];
  }
  std::vector<sparse::CheckedCsr<float>> matrices() const;
};

// The end of the description of a file that has no values.
inline constexpr const char* kPatternNote = " (a pattern; values are +1 or -1)";

// Reads the weights from a file or draws them from the seed, that of each group from the next one.
// Throws the errors of io::read_weights and fit_range.
Weights make_weights(const Arguments& arguments);

// Does the same after it has chosen the block, if the arguments ask for that (choose_block, whose
// note is returned in `block_choice`); a file is read once. With arguments.product the weights are
// those of its layer: the product takes the sizes of a file and the density of what was drawn, and
// the arguments take the sizes of the layer. Throws the errors of choose_block, too, and
// Error{InvalidArgument} if the command line gives other sizes of a product than the file has.
Weights make_weights_of_run(Arguments& arguments, std::string& block_choice);

// Returns the pattern of the file --matrix as elements whose values are all 1, as load_pattern
// does, without reading it again. Returns no value if there is no such file.
std::optional<sparse::Csr<double>> pattern_of_file(const Weights& weights);

// Cuts the blocks of the weights into blocks that have a static kernel, if they have none.
void use_kernel_blocks(Weights& weights);

// Return the problem of the layer with the block and the density of the weights, which may be
// counted elsewhere: blocks of all groups.
Problem make_problem(const Arguments& arguments, const Weights& weights);
Problem make_problem(const Arguments& arguments, const Weights& weights, BlockShape block,
                     std::int64_t blocks);

}  // namespace tessera::tools
