#include "tessera/train/data/idx.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera::train {
namespace {

constexpr std::uint32_t kImages = 0x803, kLabels = 0x801;
constexpr std::size_t kMostUnpacked = std::size_t(1) << 32;
// Deflate's longest match of 258 bytes takes 2 bits.
constexpr std::size_t kMostRatio = 1032;

[[noreturn]] void refuse_idx(std::string_view name, const std::string& what,
                             ErrorCode code = ErrorCode::BadInput) {
  throw Error(code, fmt::format("{}: {}", name, what));
}

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

// Unpacks a gzip stream in pieces, so that memory grows with what is there.
std::string unpack(std::string_view packed, std::string_view name) {
  z_stream stream{};
  constexpr int kGzipOnly = 16 + MAX_WBITS;
  if (inflateInit2(&stream, kGzipOnly) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  const std::size_t most = std::min(kMostUnpacked, kMostRatio * packed.size());
  std::string text;
  std::string piece(std::size_t(1) << 16, '\0');
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    if (stream.avail_in == 0) {
      const std::size_t some = std::min(packed.size(), std::size_t(1) << 30);
      if (some == 0) refuse_idx(name, "the gzip stream ends early; fetch the file again");
      // zlib's interface is not const, but it only reads.
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
      stream.avail_in = uInt(some);
      packed.remove_prefix(some);
    }
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = uInt(piece.size());
    state = inflate(&stream, Z_NO_FLUSH);
    if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR)
      refuse_idx(name, fmt::format("the gzip stream is damaged ({}); fetch the file again",
                                   stream.msg != nullptr ? stream.msg : "zlib gives no reason"));
    text.append(piece, 0, piece.size() - stream.avail_out);
    if (text.size() > most)
      refuse_idx(name, fmt::format("unpacks to more than {} bytes", most),
                 ErrorCode::LimitExceeded);
  }
  if (stream.avail_in != 0 || !packed.empty())
    refuse_idx(name, "bytes follow the end of the gzip stream; fetch the file again");
  return text;
}

std::uint32_t word_at(std::string_view bytes, std::size_t at) {
  std::uint32_t word = 0;
  for (std::size_t i = at; i < at + 4; ++i) word = word << 8 | static_cast<unsigned char>(bytes[i]);
  return word;
}

// Returns the counts of a file with `dims` dimensions, which agree with its bytes.
std::vector<std::int64_t> counts_of(std::string_view bytes, std::string_view name,
                                    std::uint32_t magic, std::size_t dims) {
  const std::size_t header = 4 + 4 * dims;
  if (bytes.size() < header)
    refuse_idx(name,
               fmt::format("{} bytes are fewer than the {} of the header", bytes.size(), header));
  if (word_at(bytes, 0) != magic)
    refuse_idx(name, fmt::format("the magic number is {:#010x}; {} have {:#010x}",
                                 word_at(bytes, 0), magic == kImages ? "images" : "labels", magic));
  std::vector<std::int64_t> counts;
  double product = 1;  // cannot overflow as three words of 32 bits could
  for (std::size_t i = 0; i < dims; ++i) {
    counts.push_back(word_at(bytes, 4 + 4 * i));
    product *= double(counts.back());
  }
  if (product != double(bytes.size() - header))
    refuse_idx(name, fmt::format("the header declares {} bytes; {} follow it", product,
                                 bytes.size() - header));
  return counts;
}

}  // namespace

LabelledImages parse_idx(std::string_view images, std::string_view labels,
                         std::string_view images_name, std::string_view labels_name,
                         std::int64_t classes) {
  std::string plain_images, plain_labels;
  if (is_gzip(images)) images = plain_images = unpack(images, images_name);
  if (is_gzip(labels)) labels = plain_labels = unpack(labels, labels_name);
  const auto sizes = counts_of(images, images_name, kImages, 3);
  const auto count = counts_of(labels, labels_name, kLabels, 1)[0];
  if (sizes[0] != count)
    refuse_idx(labels_name,
               fmt::format("{} labels for the {} images of {}", count, sizes[0], images_name));
  if (sizes[0] * sizes[1] * sizes[2] == 0)
    refuse_idx(images_name, fmt::format("{} images of {} x {} pixels; the minimum is 1", sizes[0],
                                        sizes[1], sizes[2]));
  images.remove_prefix(16);
  labels.remove_prefix(8);
  const auto bad = std::find_if(labels.begin(), labels.end(), [&](char label) {
    return static_cast<unsigned char>(label) >= classes;
  });
  if (bad != labels.end())
    refuse_idx(labels_name,
               fmt::format("label {} of image {}; labels must be below {}",
                           int(static_cast<unsigned char>(*bad)), bad - labels.begin(), classes));
  return {sizes[1], sizes[2], {images.begin(), images.end()}, {labels.begin(), labels.end()}};
}

LabelledImages read_idx(const std::string& images, const std::string& labels,
                        std::int64_t classes) {
  return parse_idx(read_file(images), read_file(labels), images, labels, classes);
}

DataSet read_fashion_mnist(const std::string& folder) {
  const auto read_part = [&](const std::string& part) {
    const auto file = [&](const char* kind) {
      const std::string path = fmt::format("{}/{}-{}-ubyte", folder, part, kind);
      std::error_code unknown;  // such as a path that is too long
      for (const char* ending : {".gz", ""})
        if (std::filesystem::exists(path + ending, unknown)) return path + ending;
      throw Error(
          ErrorCode::BadInput,
          fmt::format("{}.gz is missing; install Debian's package dataset-fashion-mnist, or "
                      "name the folder that holds the four files of the data set",
                      path));
    };
    return read_idx(file("images-idx3"), file("labels-idx1"));
  };
  return {read_part("train"), read_part("t10k")};
}

}  // namespace tessera::train
