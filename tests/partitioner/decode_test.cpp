#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/base/error.hpp"
#include "tessera/tests/partitioner/bucket_checks.hpp"
#include "tessera/tests/partitioner/patterns.hpp"

namespace tessera::partitioner {
namespace {

using testing::HasSubstr;

struct Damaged {
  std::string name;
  sparse::Csr<float> matrix;
  Buckets buckets;
};

// Small buckets of every kind, some of them with guests.
std::vector<Damaged> samples() {
  const auto elements = test::draw({"##..#.", ".#.##.", "#.###.", ".....#"});
  const auto blocks = test::draw({"##.#", ".###", "#..."}, {2, 3});
  std::vector<Damaged> result;
  for (const std::int64_t bits : {16, 32})
    for (const auto* matrix : {&elements, &blocks})
      for (const bool forced : {false, true}) {
        TileGrid grid;
        grid.size = {1, matrix->rows, matrix->cols, 8};
        grid.block = matrix->block;
        grid.splits = {1, 1, 2, 2};
        grid.z_grain = 2;
        grid.workers = 2;
        grid.word_bits = bits;
        grid.grad_w = true;
        grid.separate_grad_a = matrix->block.is_element();
        grid = test::with_room(grid, *matrix);
        grid.meta_words = forced ? grid.meta_words : 60;
        result.push_back({std::to_string(bits) + (forced ? " bits, forced" : " bits"), *matrix,
                          *encode(*matrix, grid, {forced}).buckets});
      }
  return result;
}

using Words = std::variant<std::vector<std::uint16_t>, std::vector<std::uint32_t>> Buckets::*;

// Decodes with word `at` exclusive-or `flip`: must be an error of the input or another matrix.
// Returns true if the message tells the word.
template <class Word>
bool expect_noticed(const Damaged& sample, Words words, std::size_t at, Word flip) {
  Buckets damaged = sample.buckets;
  std::get<std::vector<Word>>(damaged.*words)[at] ^= flip;
  const auto values = to_bucket_order<float, float>(sample.buckets, sample.matrix.values);
  try {
    EXPECT_NE(decode(damaged, std::span<const float>(values)), sample.matrix)
        << sample.name << " word " << at << " flipped by " << flip;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::BadInput) << e.what();
    EXPECT_THAT(e.what(), HasSubstr("bucket "));
    EXPECT_THAT(e.what(), HasSubstr("word "));
    const std::string text = e.what(), place = fmt::format("word {}: in the ", at);
    if (text.find(place) != text.npos) {
      const unsigned found = std::get<std::vector<Word>>(damaged.*words)[at];
      EXPECT_THAT(text, HasSubstr(fmt::format(" bucket is {}, but ", found)));
      return true;
    }
  }
  return false;
}

// Returns how many messages told the word.
template <class Word>
int flip_everything(const Damaged& sample, Words words) {
  int told = 0;
  const auto& all = std::get<std::vector<Word>>(sample.buckets.*words);
  for (std::size_t at = 0; at < all.size(); ++at) {
    for (const Word flip : {Word(1), Word(2), Word(4), Word(8), Word(32), Word(0x100), Word(-1),
                            Word(Word(1) << (8 * sizeof(Word) - 1))})
      told += expect_noticed<Word>(sample, words, at, flip);
    if (all[at] != 0) told += expect_noticed<Word>(sample, words, at, all[at]);  // becomes 0
  }
  return told;
}

TEST(Decode, NoticesEveryChangedWord) {
  int told = 0;
  for (const Damaged& sample : samples())
    for (const Words words : {&Buckets::meta, &Buckets::grad_a_meta})
      if (sample.buckets.grid.word_bits == 16)
        told += flip_everything<std::uint16_t>(sample, words);
      else
        told += flip_everything<std::uint32_t>(sample, words);
  EXPECT_GT(told, 100);
}

TEST(Decode, NoticesARecordThatIsThereTwice) {
  Damaged sample = samples()[1];
  auto& words = std::get<0>(sample.buckets.meta);
  const auto length = sample.buckets.grid.meta_words;
  for (std::int64_t b = 1; b < sample.buckets.grid.buckets(); ++b)
    std::copy(words.begin(), words.begin() + length, words.begin() + b * length);
  sample.buckets.grid.separate_grad_a = false;
  sample.buckets.grid.grad_a_words = 0;
  std::get<0>(sample.buckets.grad_a_meta).clear();
  const auto values = to_bucket_order<float, float>(sample.buckets, sample.matrix.values);
  try {
    decode(sample.buckets, std::span<const float>(values));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::BadInput);
    EXPECT_THAT(e.what(), HasSubstr("also lies in bucket 0"));
  }
}

// Two workers would add to one output row at the same time.
TEST(Decode, RefusesARowThatStandsTwiceInItsRecord) {
  const auto matrix = test::draw({"##..", "..##"});
  TileGrid grid;
  grid.size = {1, 2, 4, 1};
  grid.workers = 1;
  Buckets b = *encode(matrix, test::with_room(grid, matrix)).buckets;
  const auto values = to_bucket_order<float, float>(b, matrix.values);
  auto& second_row = std::get<0>(b.meta)[14 + 4];
  ASSERT_EQ(second_row, 1);
  second_row = 0;
  try {
    decode(b, std::span<const float>(values));
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "bucket 0, word 18: the row stands twice in its record; it is 0");
  }
}

TEST(Decode, RefusesListsOfTheWrongLength) {
  Damaged sample = samples()[0];
  auto values = to_bucket_order<float, float>(sample.buckets, sample.matrix.values);
  EXPECT_NO_THROW(decode(sample.buckets, std::span<const float>(values)));
  const std::span<const float> short_values(values.data(), values.size() - 1);
  EXPECT_THROW(decode(sample.buckets, short_values), Error);
  std::get<0>(sample.buckets.meta).pop_back();
  EXPECT_THROW(decode(sample.buckets, std::span<const float>(values)), Error);
  sample.buckets.meta = std::vector<std::uint32_t>{};
  EXPECT_THROW(decode(sample.buckets, std::span<const float>(values)), Error);
}

TEST(Decode, DoesNotReadTheSourceMap) {
  Damaged sample = samples()[0];
  const auto values = to_bucket_order<float, float>(sample.buckets, sample.matrix.values);
  sample.buckets.source.clear();
  EXPECT_EQ(decode(sample.buckets, std::span<const float>(values)), sample.matrix);
}

TEST(BucketValues, AreConvertedAndPaddedWithZero) {
  const auto matrix = test::draw({"##", ".#"}, {1, 2});
  TileGrid grid;
  grid.size = {1, 2, 4, 1};
  grid.block = {1, 2};
  grid.splits.x = 2;
  grid = test::with_room(grid, matrix);
  const Buckets b = *encode(matrix, grid).buckets;
  const std::vector<double> values = {1, 2, 3, 1.0 / 3, 5, 65536};
  const auto half = to_bucket_order<Half, double>(b, values);
  ASSERT_EQ(half.size(), 12u);
  EXPECT_EQ(half[3].bits, Half(1.0f / 3).bits);
  EXPECT_EQ(half[4].bits, 0);
  EXPECT_EQ(half[6].bits, Half(5.0f).bits);
  EXPECT_EQ(half[7].bits, 0x7c00);  // infinity
  std::vector<float> back(values.size());
  from_bucket_order<float, Half>(b, half, back);
  EXPECT_EQ(back[3], float(Half(1.0f / 3)));
  EXPECT_EQ(back[4], 5.0f);
  const auto same = to_bucket_order<double, double>(b, values);
  std::vector<double> twice(values.size());
  from_bucket_order<double, double>(b, same, twice);
  EXPECT_EQ(twice, values);
  EXPECT_THROW((to_bucket_order<float, double>(b, std::span(values).first(5))), Error);
  EXPECT_THROW((from_bucket_order<float, Half>(b, std::span(half).first(11), back)), Error);
  EXPECT_THROW((from_bucket_order<float, Half>(b, half, std::span(back).first(5))), Error);
}

}  // namespace
}  // namespace tessera::partitioner
