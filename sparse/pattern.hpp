#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/dims.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::sparse {

// The distribution of the blocks of a generated pattern.
enum class PatternKind {
  Uniform,   // every choice of places is equally likely
  Banded,    // each row has the places nearest to the diagonal; the places are not random
  RowWise,   // the numbers of blocks of two rows differ by one at most; the columns are random
  PowerLaw,  // rows in random order; the k-th fullest has a number in proportion to 1 / k
  SawTooth,  // the rows have numbers in proportion to 1, 2, ... 16, 1, 2, ...
  NOfM       // n of every m neighbours in a row; the last group of a row may be shorter
};

// An area of elements [rows) x [cols) whose density is `weight` times that of the whole matrix, as
// far as places and blocks suffice. The rest of the matrix gets the remaining blocks.
struct WeightedArea {
  Range rows, cols;
  double weight = 1;
  friend bool operator==(const WeightedArea&, const WeightedArea&) = default;
};

// The kind of a pattern with its parameters.
struct PatternSpec {
  PatternKind kind = PatternKind::Uniform;
  std::int64_t n = 0, m = 0;         // for NOfM: 1 <= n <= m
  std::optional<WeightedArea> area;  // for Uniform only
  friend bool operator==(const PatternSpec&, const PatternSpec&) = default;
};

// Parses "uniform", "banded", "rowwise", "power-law", "saw-tooth" or "n:m" with two numbers, for
// example "2:4". Throws Error{InvalidArgument}, which lists them, for any other text.
PatternSpec parse_pattern(std::string_view text);

// Returns the text that parse_pattern accepts, followed by the area if there is one.
std::string to_string(const PatternSpec& spec);

// The cost of drawing a pattern, known before it starts.
struct DrawingCost {
  double places = 0;  ///< block rows * block columns
  double values = 0;  ///< stored elements
  double bytes = 0;   ///< memory of the matrix and of the draw
};

// The most that draw_pattern accepts. All places are visited, at about 5 ns each.
inline constexpr DrawingCost kMostDrawn{0x1p32, 0x1p26, 0x1p30};

// Returns the cost of draw_pattern with these arguments. Throws Error{InvalidArgument} as
// draw_pattern does. O(1).
DrawingCost drawing_cost(std::int64_t rows, std::int64_t cols, BlockShape block, double density,
                         const PatternSpec& spec);

// Returns a matrix [rows][cols] with exactly round(density * block rows * block columns) blocks,
// distributed by `spec`, and values of +1 or -1. For NOfM n and m give the number of blocks instead
// of `density`, which must be in [0, 1] all the same. The same arguments give the same matrix on
// every computer. Uniform without an area equals random_pattern.
// An area consists of the blocks between its begin and its end after both were rounded down to the
// block grid. Of f * P blocks in P places, its A places get min(f * P, A, f * A * weight), rounded,
// and more only if the rest does not fit outside the area.
// Throws Error{InvalidArgument} as random_pattern does, and for an area outside the matrix, a
// negative weight, an area with another kind than Uniform, and n and m out of range. Throws
// Error{LimitExceeded} before it allocates if the cost exceeds kMostDrawn. O(places).
// Example: 64 x 64, density 0.1 and {{0, 16}, {0, 16}, 4}: 102 of 256 places inside, 308 outside.
Csr<float> draw_pattern(std::int64_t rows, std::int64_t cols, BlockShape block, double density,
                        std::uint64_t seed, const PatternSpec& spec);

}  // namespace tessera::sparse
