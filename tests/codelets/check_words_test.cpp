#include "tessera/codelets/check_words.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tessera/codelets/visit_cost.hpp"
#include "tessera/tests/codelets/random_case.hpp"

namespace tessera::test {
namespace {

using codelets::BucketCapacity;
using codelets::WordsFault;

// A case with the worker tables from which visits are priced.
KernelCase case_with_tables(const KernelKey& key, std::uint64_t seed) {
  KernelCase drawn = random_case(key, {.block = {2, 3}, .z = 4, .gap = 0, .seed = seed});
  for (DrawnRecord& record : drawn.records) {
    const auto rows = std::int64_t(record.rows.size());
    if (key.format == Format::Element && key.operation != Operation::GradA)
      record.workers = {{0, rows, 0, 2}, {0, rows, 2, 2}};
    record.grad_w_runs = {record.entries() - record.entries() / 2, record.entries() / 2};
    if (record.grad_w_runs[1] == 0) record.grad_w_runs.pop_back();
  }
  KernelCase c(key, drawn.block, {drawn.x, drawn.y, drawn.z, drawn.gap}, drawn.records);
  c.sub_group = drawn.sub_group;
  Random random(seed);
  c.fill([&random] { return double(random.sign()); });
  return c;
}

BucketCapacity room_of(const KernelCase& c) {
  return {std::int64_t(c.words.size()), std::int64_t(c.values.size())};
}

std::optional<WordsFault> check(KernelCase& c) { return check_words(c.key, c.args(), room_of(c)); }

void flip(KernelCase& c, std::size_t word, int bit) {
  c.words[word] ^= 1u << bit;
  if (!c.narrow_words.empty()) c.narrow_words[word] ^= std::uint16_t(1u << bit);
}

void visit(KernelCase& c, Kernel kernel) {
  const codelets::KernelArgs args = c.args();
  kernel(args);
  codelets::visit_cycles(
      {.key = c.key,
       .buckets = {&args.meta, 1},
       .sub_group = c.sub_group,
       .block = c.key.format == Format::Element ? BlockShape{} : BlockShape{4, 4},
       .z = c.z,
       .conv_units = 8});
}

class CheckWords : public testing::TestWithParam<KernelEntry> {};

TEST_P(CheckWords, PassesWhatTheEncoderWrites) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    KernelCase c = case_with_tables(GetParam().key, seed);
    const auto fault = check(c);
    EXPECT_FALSE(fault) << "seed " << seed << ", word " << fault->word << ": " << fault->what;
  }
}

// Flips every bit of every word in turn. Words that pass the check are run, and sanitizers see any
// access outside the buffers.
TEST_P(CheckWords, WhatItPassesCanBeRunWhicheverBitFlips) {
  int refused = 0, passed = 0;
  KernelCase c = case_with_tables(GetParam().key, 3);
  for (std::size_t word = 0; word < c.words.size(); ++word)
    for (int bit = 0; bit < int(c.key.word_bits); ++bit) {
      flip(c, word, bit);
      if (check(c)) {
        ++refused;
      } else {
        ++passed;
        for (const Kernel kernel : {GetParam().reference, GetParam().run}) {
          KernelCase copy = c;
          visit(copy, kernel);
        }
      }
      flip(c, word, bit);
    }
  EXPECT_GT(refused, 50);
  EXPECT_GT(passed, 20) << "rows and columns inside the cell are no fault";
}

TEST_P(CheckWords, RefusesABucketWithoutItsLastWords) {
  KernelCase c = case_with_tables(GetParam().key, 5);
  for (std::int64_t words = 0; words < std::int64_t(c.words.size()); ++words)
    ASSERT_TRUE(check_words(c.key, c.args(), {words, room_of(c).values})) << words;
  // The last record belongs to another cell, so the last value that is needed is not the bucket's
  // last value.
  bool refused = false;
  for (std::int64_t values = room_of(c).values; values >= 0 && !refused; --values)
    refused = check_words(c.key, c.args(), {room_of(c).words, values}).has_value();
  EXPECT_TRUE(refused);
}

TEST_P(CheckWords, NamesWordAndReason) {
  KernelCase c = case_with_tables(GetParam().key, 3);
  c.words[4] = 0;  // next_record of the first
  if (!c.narrow_words.empty()) c.narrow_words[4] = 0;
  const auto fault = check(c);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->word, 0);
  EXPECT_EQ(fault->what, "record without end");
}

std::string name_of(const testing::TestParamInfo<KernelEntry>& p) {
  return std::string(p.param.name);
}

INSTANTIATE_TEST_SUITE_P(List, CheckWords,
                         testing::ValuesIn(codelets::kernels().begin(), codelets::kernels().end()),
                         name_of);

}  // namespace
}  // namespace tessera::test
