#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/dims.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::sparse {

// How the blocks of a drawn pattern are spread.
enum class PatternKind {
  Uniform,   // every choice of places equally likely
  Banded,    // in each row the places nearest to the diagonal; nothing is drawn
  RowWise,   // every row the same number, differing by one at most; any columns
  PowerLaw,  // rows in random order, the k-th fullest in proportion to 1 / k
  SawTooth,  // rows in proportion to 1, 2, ... 16, 1, 2, ...
  NOfM       // of every m neighbours in a row n, the last group cut short
};

// Elements [rows) x [cols) whose density is `weight` times that of the whole matrix, as far as
// there are places and blocks; the rest of the matrix has what remains.
struct WeightedArea {
  Range rows, cols;
  double weight = 1;
  friend bool operator==(const WeightedArea&, const WeightedArea&) = default;
};

// What kind of pattern to draw.
struct PatternSpec {
  PatternKind kind = PatternKind::Uniform;
  std::int64_t n = 0, m = 0;         // of NOfM: 1 <= n <= m
  std::optional<WeightedArea> area;  // of Uniform
  friend bool operator==(const PatternSpec&, const PatternSpec&) = default;
};

// "uniform", "banded", "rowwise", "power-law", "saw-tooth" or "n:m" with two numbers ("2:4").
// Error{InvalidArgument} lists them.
PatternSpec parse_pattern(std::string_view text);
std::string to_string(const PatternSpec& spec);

// A [rows][cols] matrix with exactly round(density * block rows * block columns) blocks spread as
// `spec` says (NOfM: as many as n and m give; `density` is not looked at), values +1 or -1. The
// same arguments give the same matrix on every computer. An area is counted in the blocks it holds
// after its begin and its end were both taken down to the block grid: of f * P blocks in P places,
// min(f * P, A, f * A * weight), rounded, lie in its A places. Uniform without an area is
// random_pattern. Error{InvalidArgument} as random_pattern, and for an area outside the matrix, a
// negative weight or one for another kind, n and m out of range. O(places).
// Example: 64 x 64, density 0.1 and {{0, 16}, {0, 16}, 4}: 102 of 256 places inside, 308 outside.
Csr<float> draw_pattern(std::int64_t rows, std::int64_t cols, BlockShape block, double density,
                        std::uint64_t seed, const PatternSpec& spec);

}  // namespace tessera::sparse
