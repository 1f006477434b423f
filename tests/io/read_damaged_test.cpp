#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/io/read.hpp"
#include "tessera/io/write.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/sparse/drawing.hpp"

namespace tessera::io {
namespace {

using Reader = std::function<ReadMatrix(const std::string&)>;

// Text that has fooled readers: huge and negative numbers, other number forms, binary bytes.
const std::vector<std::string> kPoison = {"-1",
                                          "0",
                                          "1",
                                          "2147483648",
                                          "99999999999999999999",
                                          "1000000000000",
                                          "nan",
                                          "1e999",
                                          "0x10",
                                          "%",
                                          ",",
                                          "+",
                                          "\n",
                                          "\r\n",
                                          " ",
                                          std::string("\0\xff", 2)};

// One small wound: bytes changed, removed, doubled, replaced, or the end cut off.
void damage(std::string& text, Random& random) {
  const auto place = [&](std::int64_t more = 0) {
    return static_cast<std::size_t>(random.below(static_cast<std::int64_t>(text.size()) + more));
  };
  if (text.empty()) text.push_back('1');
  switch (random.below(6)) {
    case 0:
      text[place()] = static_cast<char>(random.below(256));
      break;
    case 1:
      text.erase(place(), static_cast<std::size_t>(1 + random.below(8)));
      break;
    case 2: {
      const std::string piece = text.substr(place(), static_cast<std::size_t>(random.below(20)));
      text.insert(place(1), piece);
      break;
    }
    case 3:
      text.insert(place(1), kPoison[static_cast<std::size_t>(random.below(std::ssize(kPoison)))]);
      break;
    case 4:
      text.resize(place());
      break;
    default: {  // a digit into another: the likeliest way to a file that is still read
      const std::size_t at = place();
      if (text[at] >= '0' && text[at] <= '9') text[at] = static_cast<char>('0' + random.below(10));
    }
  }
}

// `accepted` counts the damaged files that could still be read.
void read_damaged_files(const std::string& whole, const Reader& reader, int& accepted) {
  constexpr int kFiles = 2000;
  constexpr std::uint64_t kSeed = 31;
  Random random(kSeed);
  for (int i = 0; i < kFiles; ++i) {
    std::string text = whole;
    for (std::int64_t wounds = 1 + random.below(3); wounds > 0; --wounds) damage(text, random);
    std::optional<ReadMatrix> read;
    try {
      read = reader(text);
    } catch (const Error& error) {
      ASSERT_TRUE(error.code() == ErrorCode::BadInput || error.code() == ErrorCode::LimitExceeded)
          << error.what();
      ASSERT_EQ(std::string(error.what()).rfind("file:", 0), 0u) << error.what();
      continue;
    }
    ASSERT_NO_THROW(check(read->matrix)) << "file " << i << " of seed " << kSeed << ":\n" << text;
    ++accepted;
  }
}

std::string mask_of(const sparse::Csr<float>& m) {
  std::string text = std::to_string(m.rows) + " " + std::to_string(m.cols) + "\n";
  for (std::int64_t r = 0, k = 0; r < m.rows; ++r) {
    for (std::int64_t c = 0; c < m.cols; ++c) {
      const bool stored = k < m.row_begin[r + 1] && m.col[k] == c;
      text += stored ? "1 " : "0 ";
      k += stored;
    }
    text.back() = '\n';
  }
  return text;
}

TEST(DamagedFiles, AreReadAsLegalMatricesOrRefused) {
  const sparse::Csr<float> m = sparse::random_pattern(7, 11, {1, 1}, 0.2, 5);
  const std::string as_mtx = write_mtx(m);
  std::string as_array = "%%MatrixMarket matrix array real symmetric\n4 4\n";
  for (int i = 0; i < 10; ++i) as_array += std::to_string(i % 3) + ".5\n";
  const std::string as_symmetric =
      "%%MatrixMarket matrix coordinate integer symmetric\n% c\n5 5 4\n1 1 3\n3 2 4\n5 1 5\n5 5 "
      "6\n";
  const Reader mtx = [](const std::string& text) { return read_mtx(text, "file"); };
  const Reader smtx = [](const std::string& text) { return read_smtx(text, "file"); };
  const Reader mask = [](const std::string& text) { return read_mask(text, "file"); };
  const std::vector<std::pair<std::string, Reader>> wholes = {{as_mtx, mtx},
                                                              {as_array, mtx},
                                                              {as_symmetric, mtx},
                                                              {write_smtx(m), smtx},
                                                              {mask_of(m), mask}};
  for (const auto& [whole, reader] : wholes) {
    ASSERT_NO_THROW(reader(whole)) << whole;
    int accepted = 0;
    read_damaged_files(whole, reader, accepted);
    EXPECT_GT(accepted, 20) << "too few of these files are read to test anything: " << whole;
    EXPECT_LT(accepted, 1900) << "too few of these files are refused: " << whole;
  }
}

TEST(DamagedFiles, CutOffAtEveryByteNeverReadAsTheWhole) {
  const sparse::Csr<float> m = sparse::random_pattern(5, 6, {1, 1}, 0.3, 6);
  const auto try_all = [](const std::string& whole, const Reader& reader) {
    const sparse::Csr<double> truth = reader(whole).matrix;
    for (std::size_t length = 0; length + 1 < whole.size(); ++length) {
      try {
        // A last number may lose digits and stay a number; the rest must have been there.
        EXPECT_EQ(reader(whole.substr(0, length)).matrix.row_begin, truth.row_begin) << length;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::BadInput) << error.what();
      }
    }
  };
  try_all(write_mtx(m), [](const std::string& text) { return read_mtx(text, "file"); });
  try_all(write_smtx(m), [](const std::string& text) { return read_smtx(text, "file"); });
  try_all(mask_of(m), [](const std::string& text) { return read_mask(text, "file"); });
}

}  // namespace
}  // namespace tessera::io
