#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/random.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::test {

// A drawn element matrix: one string per row; '.' is not stored, '0'..'9' is stored with that
// value.
inline sparse::Csr<float> draw(const std::vector<std::string>& picture) {
  sparse::Csr<float> m;
  m.rows = static_cast<std::int64_t>(picture.size());
  m.cols = picture.empty() ? 0 : static_cast<std::int64_t>(picture.front().size());
  for (const std::string& line : picture) {
    for (std::size_t c = 0; c < line.size(); ++c) {
      if (line[c] == '.') continue;
      m.col.push_back(static_cast<std::int32_t>(c));
      m.values.push_back(static_cast<float>(line[c] - '0'));
    }
    m.row_begin.push_back(m.blocks());
  }
  return m;
}

// A [rows][cols] matrix in which about `density` of the blocks hold numbers 1, 2, 3, ... and the
// others zeros. The truth for conversions, made without them.
inline Matrix<double> random_dense(std::int64_t rows, std::int64_t cols, BlockShape block,
                                   double density, Random& random) {
  Matrix<double> m(rows, cols);
  double next = 1;
  for (std::int64_t r = 0; r < rows; r += block.rows)
    for (std::int64_t c = 0; c < cols; c += block.cols) {
      if (random.unit() >= density) continue;
      for (std::int64_t i = 0; i < block.rows; ++i)
        for (std::int64_t j = 0; j < block.cols; ++j) m(r + i, c + j) = next++;
    }
  return m;
}

// Whether `action` throws Error of that code with every part in its message.
inline testing::AssertionResult raises(ErrorCode code, const std::vector<std::string>& parts,
                                       const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    const std::string message = error.what();
    if (error.code() != code)
      return testing::AssertionFailure()
             << "code is " << to_string(error.code()) << ", message: " << message;
    for (const std::string& part : parts)
      if (message.find(part) == std::string::npos)
        return testing::AssertionFailure() << "no \"" << part << "\" in: " << message;
    return testing::AssertionSuccess() << message;
  }
  return testing::AssertionFailure() << "nothing was thrown";
}

}  // namespace tessera::test
