#include "tessera/train/data/batches.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tessera/tests/support/message_of.hpp"

namespace tessera::train {
namespace {

using testing::Each;
using testing::HasSubstr;

// Pictures of 3 x 7 pixels; picture i has the label i % 256 and pixels that tell it apart.
LabelledImages pictures(std::int64_t count) {
  LabelledImages images{3, 7, {}, {}};
  for (std::int64_t i = 0; i < count; ++i) {
    images.labels.push_back(std::uint8_t(i));
    for (std::int64_t f = 0; f < 21; ++f) images.pixels.push_back(std::uint8_t(i * 7 + f));
  }
  return images;
}

struct Loaded {
  Matrix<float> s;
  std::vector<std::int32_t> labels;
  friend bool operator==(const Loaded&, const Loaded&) = default;
};

Loaded load(Batches& batches, std::int64_t epoch, std::int64_t index) {
  Loaded made{Matrix<float>(21, batches.batch()),
              std::vector<std::int32_t>(std::size_t(batches.batch()))};
  batches.load(epoch, index, made.s.view(), made.labels);
  return made;
}

TEST(Batches, AreNormalisedColumnsWithTheirLabels) {
  const LabelledImages images = pictures(100);
  for (const std::int64_t batch : {1, 15, 16, 17, 100}) {
    Batches batches(images, batch, 5, {.mean = 0.5, .deviation = 0.25});
    const Loaded made = load(batches, 2, batches.count() - 1);
    for (std::int64_t c = 0; c < batch; ++c)
      for (std::int64_t f = 0; f < 21; ++f) {
        const double pixel = std::uint8_t(made.labels[std::size_t(c)] * 7 + f);
        EXPECT_FLOAT_EQ(made.s(f, c), float((pixel / 255 - 0.5) / 0.25));
      }
  }
}

TEST(Batches, HaveEveryPictureOnceAnEpoch) {
  const LabelledImages images = pictures(90);
  Batches batches(images, 20, 1);
  EXPECT_EQ(batches.count(), 4);  // ten pictures are left out
  std::set<int> seen;
  for (std::int64_t i = 0; i < 4; ++i)
    for (const std::int32_t label : load(batches, 0, i).labels)
      EXPECT_TRUE(seen.insert(label).second);
  EXPECT_EQ(seen.size(), 80U);
}

TEST(Batches, DependOnSeedEpochAndIndexAlone) {
  const LabelledImages images = pictures(200);
  Batches one(images, 32, 1), again(images, 32, 1), other(images, 32, 2);
  const Loaded wanted = load(one, 3, 4);
  load(again, 7, 1);
  EXPECT_EQ(load(again, 3, 4), wanted);
  EXPECT_NE(load(other, 3, 4), wanted);
  EXPECT_NE(load(one, 4, 4), wanted);
  EXPECT_NE(load(one, 3, 3), wanted);
}

TEST(Batches, InOrderEndWithEmptyColumns) {
  const LabelledImages images = pictures(10);
  const Batches batches(images, 4, 1);
  Matrix<float> s(21, 4);
  std::vector<std::int32_t> labels(4);
  for (float& v : s.elements()) v = 9;
  EXPECT_EQ(batches.load_in_order(8, s.view(), labels), 2);
  EXPECT_EQ(labels[0], 8);
  EXPECT_EQ(labels[1], 9);
  for (std::int64_t f = 0; f < 21; ++f) {
    EXPECT_FLOAT_EQ(s(f, 1), float((double(std::uint8_t(63 + f)) / 255 - 0.286) / 0.353));
    EXPECT_EQ(s(f, 2), 0);
    EXPECT_EQ(s(f, 3), 0);
  }
  EXPECT_EQ(batches.load_in_order(10, s.view(), labels), 0);
}

TEST(Batches, RefuseSizesOutsideTheirRange) {
  const LabelledImages images = pictures(10);
  const auto refusal = [](const auto& call) {
    return test::message_of(call, ErrorCode::InvalidArgument);
  };
  EXPECT_THAT(refusal([&] { Batches(images, 0, 1); }), HasSubstr("1 to 10"));
  EXPECT_THAT(refusal([&] { Batches(images, 11, 1); }), HasSubstr("1 to 10"));
  EXPECT_THAT(refusal([&] { Batches(images, 2, 1, {.deviation = 0}); }), HasSubstr("above 0"));
  Batches batches(images, 4, 1);
  Matrix<float> s(21, 4), few(20, 4);
  std::vector<std::int32_t> labels(4);
  EXPECT_THAT(refusal([&] { batches.load(0, 2, s.view(), labels); }), HasSubstr("0..1"));
  EXPECT_THAT(refusal([&] { batches.load(0, 0, few.view(), labels); }), HasSubstr("20 features"));
  EXPECT_THAT(refusal([&] { batches.load(0, 0, s.view(), std::span(labels).first(3)); }),
              HasSubstr("3 labels"));
  for (const std::int64_t begin : {-1, 11})
    EXPECT_THAT(refusal([&] { batches.load_in_order(begin, s.view(), labels); }),
                HasSubstr("0..10"));
  EXPECT_THAT(refusal([&] { batches.load_in_order(0, few.view(), labels); }),
              HasSubstr("20 features"));
  labels.resize(3);
  EXPECT_THAT(refusal([&] { batches.load_in_order(0, s.view(), labels); }), HasSubstr("3 labels"));
}

}  // namespace
}  // namespace tessera::train
