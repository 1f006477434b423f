#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tessera/bench/layer/layer_case.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::bench {

// One case of the grid: a pass of a layer with a pattern that is drawn, or read from a file.
struct GridCase {
  std::string group;    // of the summary
  LayerCase layer;      // its density is that of the pattern
  std::string pattern;  // "random", "power", "banded", or the name of a file
  std::filesystem::path file;
  bool batch_first = false;  // rows of operands and results are samples

  // "768x3072 power 0.1 1x1 fwd z128 features float"
  std::string name() const;
};

// Returns the cases of a list (grid.tsv), in its order. `shared` has the folders of matrices that
// it names; one that is missing gives no cases. Throws std::runtime_error for a line that is wrong.
std::vector<GridCase> read_grid(const std::filesystem::path& list,
                                const std::filesystem::path& shared);

// Returns the .smtx and .mtx files below a folder, by name; none if there is no such folder.
std::vector<std::filesystem::path> matrix_files(const std::filesystem::path& folder);

// Returns the matrix of a file as weights. Throws what io::read_matrix throws.
sparse::Csr<float> read_weights(const std::filesystem::path& file);

// Returns the weights of a case in its blocks. A drawn pattern has the blocks that round its sides
// up. Throws what sparse::random_pattern and io::read_matrix throw.
sparse::Csr<float> grid_weights(const GridCase& c);

}  // namespace tessera::bench
