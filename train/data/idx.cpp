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

constexpr std::size_t kMostUnpacked = std::size_t(1) << 32;
// Pictures of data sets reach a ratio of about 6; equal bytes alone reach 1000.
constexpr std::size_t kMostRatio = 64;
constexpr std::size_t kAlwaysAllowed = std::size_t(16) << 20;

[[noreturn]] void refuse_idx(std::string_view name, const std::string& what,
                             ErrorCode code = ErrorCode::BadInput) {
  throw_fault_of_file(code, fmt::format("{}: {}", name, what));
}

std::uint32_t word_at(std::string_view bytes, std::size_t at) {
  std::uint32_t word = 0;
  for (std::size_t i = at; i < at + 4; ++i) word = word << 8 | static_cast<unsigned char>(bytes[i]);
  return word;
}

// The kind of a file: its magic number and its number of counts.
struct IdxKind {
  std::uint32_t magic;
  std::size_t dims;

  std::size_t header() const { return 4 + 4 * dims; }
};

constexpr IdxKind kImages{0x803, 3}, kLabels{0x801, 1};

// The start of a file, and the bytes that it declares for the rest.
struct IdxHeader {
  std::vector<std::int64_t> counts;
  double bytes = 1;  // cannot overflow as three words of 32 bits could
};

IdxHeader header_of(std::string_view bytes, std::string_view name, const IdxKind& kind) {
  if (bytes.size() < kind.header())
    refuse_idx(name, fmt::format("{} bytes are fewer than the {} of the header", bytes.size(),
                                 kind.header()));
  if (word_at(bytes, 0) != kind.magic)
    refuse_idx(name,
               fmt::format("the magic number is {:#010x}; {} have {:#010x}", word_at(bytes, 0),
                           kind.magic == kImages.magic ? "images" : "labels", kind.magic));
  IdxHeader header;
  for (std::size_t i = 0; i < kind.dims; ++i) {
    header.counts.push_back(word_at(bytes, 4 + 4 * i));
    header.bytes *= double(header.counts.back());
  }
  return header;
}

// Returns the counts of a file, which agree with its bytes.
std::vector<std::int64_t> counts_of(std::string_view bytes, std::string_view name,
                                    const IdxKind& kind) {
  IdxHeader header = header_of(bytes, name, kind);
  if (header.bytes != double(bytes.size() - kind.header()))
    refuse_idx(name, fmt::format("the header declares {} bytes; {} follow it", header.bytes,
                                 bytes.size() - kind.header()));
  return std::move(header.counts);
}

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

// Unpacks a gzip stream in pieces, so that memory grows with what is there, and to no more than the
// header declares.
std::string unpack(std::string_view packed, std::string_view name, const IdxKind& kind) {
  z_stream stream{};
  constexpr int kGzipOnly = 16 + MAX_WBITS;
  if (inflateInit2(&stream, kGzipOnly) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  const std::size_t most =
      std::min(kMostUnpacked, std::max(kAlwaysAllowed, kMostRatio * packed.size()));
  double declared = -1;  // until the header is unpacked
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
    if (declared < 0 && text.size() >= kind.header()) declared = header_of(text, name, kind).bytes;
    if (declared >= 0 && double(text.size() - kind.header()) > declared)
      refuse_idx(name, fmt::format("the header declares {} bytes; more follow it", declared));
    if (text.size() > most || declared > double(most))
      refuse_idx(name,
                 fmt::format("unpacks to more than {} bytes; the limits are {} times its packed "
                             "bytes (16 MiB is always allowed) and 4 GiB; unpack it with gunzip",
                             most, kMostRatio),
                 ErrorCode::LimitExceeded);
  }
  if (stream.avail_in != 0 || !packed.empty())
    refuse_idx(name, "bytes follow the end of the gzip stream; fetch the file again");
  return text;
}

}  // namespace

void LabelledImages::keep_first(std::int64_t pictures) {
  if (count() <= pictures) return;
  pixels.resize(std::size_t(pictures * features()));
  labels.resize(std::size_t(pictures));
}

LabelledImages parse_idx(std::string_view images, std::string_view labels,
                         std::string_view images_name, std::string_view labels_name,
                         std::int64_t classes) {
  std::string plain_images, plain_labels;
  if (is_gzip(images)) images = plain_images = unpack(images, images_name, kImages);
  if (is_gzip(labels)) labels = plain_labels = unpack(labels, labels_name, kLabels);
  const auto sizes = counts_of(images, images_name, kImages);
  const auto count = counts_of(labels, labels_name, kLabels)[0];
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
