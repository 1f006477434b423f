#include "tessera/train/data/idx.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "tessera/base/file.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/tests/support/temporary_folder.hpp"
#include "tessera/tests/train/fashion_mnist.hpp"

namespace tessera::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string word(std::uint32_t n) {
  return {char(n >> 24), char(n >> 16 & 0xff), char(n >> 8 & 0xff), char(n & 0xff)};
}

// Two pictures of 1 x 3.
std::string two_images(std::uint32_t magic = 0x803, std::uint32_t count = 2) {
  return word(magic) + word(count) + word(1) + word(3) + std::string("\1\2\3\4\5\6");
}

std::string labels_of(const std::string& labels, std::uint32_t magic = 0x801) {
  return word(magic) + word(std::uint32_t(labels.size())) + labels;
}

std::string refusal(const std::string& images, const std::string& labels,
                    ErrorCode code = ErrorCode::BadInput) {
  return test::message_of([&] { parse_idx(images, labels, "a.idx", "b.idx", 10); }, code);
}

// printf '\0\0\10\1\0\0\0\2\7\3' | gzip -9n: the labels 7 and 3.
std::string packed_labels() {
  const unsigned char bytes[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03,
                                 0x63, 0x60, 0xe0, 0x60, 0x64, 0x60, 0x60, 0x60, 0x62, 0x67,
                                 0x06, 0x00, 0x64, 0x6b, 0xd4, 0x43, 0x0a, 0x00, 0x00, 0x00};
  return {reinterpret_cast<const char*>(bytes), sizeof bytes};
}

TEST(Idx, HasPicturesAndLabels) {
  const LabelledImages read = parse_idx(two_images(), labels_of("\7\3"), "a", "b");
  EXPECT_EQ(read.rows, 1);
  EXPECT_EQ(read.cols, 3);
  EXPECT_THAT(read.pixels, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(read.labels, ElementsAre(7, 3));
}

TEST(Idx, MayBePacked) {
  EXPECT_EQ(parse_idx(two_images(), packed_labels(), "a", "b"),
            parse_idx(two_images(), labels_of("\7\3"), "a", "b"));
}

TEST(Idx, IsRefusedWhereverItIsCut) {
  const std::string images = two_images(), labels = labels_of("\7\3"), packed = packed_labels();
  for (std::size_t n = 0; n < images.size(); ++n)
    EXPECT_THAT(refusal(images.substr(0, n), labels), HasSubstr("a.idx: ")) << n;
  for (std::size_t n = 0; n < labels.size(); ++n)
    EXPECT_THAT(refusal(images, labels.substr(0, n)), HasSubstr("b.idx: ")) << n;
  for (std::size_t n = 2; n < packed.size(); ++n)
    EXPECT_THAT(refusal(images, packed.substr(0, n)),
                HasSubstr("b.idx: the gzip stream ends early"))
        << n;
}

TEST(Idx, IsRefusedWhenABitOfItsPackedFormIsFlipped) {
  const std::string packed = packed_labels();
  const LabelledImages whole = parse_idx(two_images(), packed, "a", "b");
  int refused = 0;
  for (std::size_t byte = 10; byte < packed.size(); ++byte)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = packed;
      damaged[byte] = char(damaged[byte] ^ (1 << bit));
      // A few bits after the last code mean nothing.
      try {
        EXPECT_EQ(parse_idx(two_images(), damaged, "a", "b"), whole) << byte << ", " << bit;
      } catch (const Error&) {
        ++refused;
      }
    }
  EXPECT_GT(refused, 150);  // of 160
  EXPECT_THAT(refusal(two_images(), packed + "x"), HasSubstr("bytes follow the end"));
}

std::string packed(const std::string& plain) {
  z_stream stream{};
  constexpr int kGzip = 16 + MAX_WBITS;
  EXPECT_EQ(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzip, 9, Z_DEFAULT_STRATEGY),
            Z_OK);
  std::string bytes(deflateBound(&stream, uLong(plain.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = uInt(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = uInt(bytes.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  bytes.resize(stream.total_out);
  deflateEnd(&stream);
  return bytes;
}

TEST(Idx, IsUnpackedToNoMoreThanItsHeaderDeclares) {
  const std::string zeros(std::size_t(64) << 20, '\0');
  EXPECT_THAT(refusal(packed(two_images() + zeros), labels_of("\7\3")),
              HasSubstr("a.idx: the header declares 6 bytes; more follow it"));
  EXPECT_THAT(refusal(two_images(), packed(labels_of("\7\3") + zeros)),
              HasSubstr("b.idx: the header declares 2 bytes; more follow it"));
  EXPECT_THAT(refusal(packed(zeros), labels_of("\7\3")),
              HasSubstr("a.idx: the magic number is 0x00000000"));
}

TEST(Idx, IsNotUnpackedToFarMoreThanItsBytes) {
  const std::string zeros(std::size_t(20) << 20, '\0');
  const std::string images = word(0x803) + word(20) + word(1024) + word(1024) + zeros;
  const std::string labels = labels_of(std::string(20, '\1'));
  EXPECT_EQ(parse_idx(images, labels, "a", "b").count(), 20) << "not packed";
  EXPECT_THAT(refusal(packed(images), labels, ErrorCode::LimitExceeded),
              HasSubstr("a.idx: unpacks to more than 16777216 bytes; the limits are 64 times"));
  const std::string fewer =
      word(0x803) + word(15) + word(1024) + word(1024) + zeros.substr(0, std::size_t(15) << 20);
  EXPECT_EQ(parse_idx(packed(fewer), labels_of(std::string(15, '\1')), "a", "b").count(), 15)
      << "16 MiB are always allowed";
}

TEST(Idx, NamesWhatIsWrong) {
  EXPECT_THAT(refusal(two_images(0x801), labels_of("\7\3")),
              HasSubstr("a.idx: the magic number is 0x00000801; images have 0x00000803"));
  EXPECT_THAT(refusal(two_images(), labels_of("\7\3", 0x803)),
              HasSubstr("b.idx: the magic number is 0x00000803; labels have 0x00000801"));
  EXPECT_THAT(refusal(two_images(0x803, 0xffffffff), labels_of("\7\3")),
              HasSubstr("the header declares"));
  EXPECT_THAT(refusal(two_images(), labels_of("\7")),
              HasSubstr("b.idx: 1 labels for the 2 images of a.idx"));
  EXPECT_THAT(refusal(two_images(), labels_of("\7\12")),
              HasSubstr("b.idx: label 10 of image 1; labels must be below 10"));
  EXPECT_THAT(refusal(word(0x803) + word(0) + word(28) + word(28), labels_of("")),
              HasSubstr("0 images of 28 x 28 pixels"));
  EXPECT_THAT(refusal(word(0x803) + word(0xffffffff) + word(0xffffffff) + word(0xffffffff),
                      labels_of("\7\3")),
              HasSubstr("the header declares"));
}

TEST(Idx, OfFashionMnistNamesThePackageWhenAFileIsMissing) {
  const test::TemporaryFolder folder;
  EXPECT_THAT(test::message_of([&] { read_fashion_mnist(folder / "nothing"); }),
              HasSubstr("package dataset-fashion-mnist"));
}

TEST(Idx, OfFashionMnistHasAsManyPicturesOfEachClass) {
  TESSERA_NEED_FASHION_MNIST(data);
  EXPECT_EQ(data.training.features(), 784);
  for (const auto& [part, each] : {std::pair{&data.training, 6000}, std::pair{&data.test, 1000}})
    for (std::uint8_t label = 0; label < 10; ++label)
      EXPECT_EQ(std::count(part->labels.begin(), part->labels.end(), label), each);
  double sum = 0, squares = 0;
  for (const std::uint8_t p : data.training.pixels) {
    sum += p / 255.0;
    squares += p / 255.0 * (p / 255.0);
  }
  const double mean = sum / double(data.training.pixels.size());
  EXPECT_NEAR(mean, 0.2860, 5e-5);
  EXPECT_NEAR(std::sqrt(squares / double(data.training.pixels.size()) - mean * mean), 0.3530, 5e-5);
}

}  // namespace
}  // namespace tessera::train
