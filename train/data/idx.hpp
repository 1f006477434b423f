#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::train {

// Labelled pictures of one size, such as those of MNIST and Fashion-MNIST.
struct LabelledImages {
  std::int64_t rows = 0, cols = 0;   // of a picture, in pixels
  std::vector<std::uint8_t> pixels;  // [pictures][rows][cols]
  std::vector<std::uint8_t> labels;  // [pictures], below the number of classes

  std::int64_t count() const { return std::int64_t(labels.size()); }
  std::int64_t features() const { return rows * cols; }

  // Keeps the first so many pictures, or all if there are fewer.
  void keep_first(std::int64_t pictures);

  friend bool operator==(const LabelledImages&, const LabelledImages&) = default;
};

// Reads a pair of IDX files, plain or gzip-compressed (told by their content, not their name). An
// IDX file has a big-endian magic number (0x00000803 images, 0x00000801 labels), counts and bytes.
// Sizes are compared with the bytes of the file before memory for them is allocated. Throws
// Error{BadInput}, which names the file, for another magic number, counts that do not agree with
// the bytes or with each other, no pictures, a label that is not below `classes`, and a damaged or
// shortened gzip stream; Error{LimitExceeded} for a gzip stream that is to unpack to more than
// max(16 MiB, 64 times its bytes) or 4 GiB. Nothing is unpacked beyond what the header declares.
// Thread-safe.
// Example: read_idx("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz")
LabelledImages read_idx(const std::string& images, const std::string& labels,
                        std::int64_t classes = 10);

// Reads the contents of such files; the names are for messages.
LabelledImages parse_idx(std::string_view images, std::string_view labels,
                         std::string_view images_name, std::string_view labels_name,
                         std::int64_t classes = 10);

// The two parts of a data set.
struct DataSet {
  LabelledImages training, test;
};

// Reads the four files of Fashion-MNIST, as Debian's package dataset-fashion-mnist installs them,
// from a folder. Throws Error{BadInput}, which names the package, if a file is missing, and the
// errors of read_idx.
DataSet read_fashion_mnist(const std::string& folder = "/usr/share/datasets/fashion-mnist");

}  // namespace tessera::train
