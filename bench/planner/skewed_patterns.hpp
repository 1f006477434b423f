#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "tessera/sparse/formats.hpp"

namespace tessera::bench {

// Kinds of patterns that are far from uniform. PowerLawRows: a few rows, anywhere, hold most
// blocks. PowerLawRowsAndColumns: a few rows and a few columns do. Banded: a band along the
// diagonal is half full. SawTooth: the rows fill up evenly and fall back, four times. DenseCorner:
// a sixteenth of the places holds half of the blocks.
enum class Skew { PowerLawRows, PowerLawRowsAndColumns, Banded, SawTooth, DenseCorner };
inline constexpr std::array kSkews = {Skew::PowerLawRows, Skew::PowerLawRowsAndColumns,
                                      Skew::Banded, Skew::SawTooth, Skew::DenseCorner};
std::string to_string(Skew skew);

struct PatternRequest {
  std::int64_t rows = 0, cols = 0;  // elements, whole blocks
  BlockShape block;
  double density = 0;  // blocks stored / all, in [0, 1]
};

// Draws a matrix with exactly round(density * places) blocks and values +1 or -1. Places are drawn
// without replacement with the weights of the skew, so full areas stay full and the remaining
// blocks are placed elsewhere. It computes one logarithm and needs 16 bytes for each place.
sparse::Csr<float> skewed_pattern(Skew skew, const PatternRequest& request, std::uint64_t seed);

}  // namespace tessera::bench
