#include "tessera/io/npz.hpp"

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/io/array.hpp"
#include "tessera/io/internal/archive.hpp"
#include "tessera/io/internal/text.hpp"
#include "tessera/io/read_options.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::io {
namespace {

// One array of numbers of an archive, with its name for messages.
struct Line {
  std::string_view key;
  const Array* array;

  std::size_t size() const { return array->values.size(); }
};

// The arrays that the format of an archive needs, with access functions that check them and fail
// with a message. Other files of the archive stay packed.
class Arrays {
 public:
  Arrays(std::string_view bytes, std::string_view name) : name_(name), archive_(bytes, name) {
    take("format");
    const Array& kind = at("format");
    format_ = kind.text.size() == 1 ? kind.text[0] : "";
    if (format_ != "csr" && format_ != "csc" && format_ != "bsr" && format_ != "coo")
      fail(fmt::format("format is {}; it must be csr, csc, bsr or coo", internal::quoted(format_)));
    for (const char* const key : {"shape", "data"}) take(key);
    if (format_ != "coo")
      for (const char* const key : {"indices", "indptr"}) take(key);
    else if (!take("coords"))
      for (const char* const key : {"row", "col"}) take(key);
  }

  [[noreturn]] void fail(const std::string& message, ErrorCode code = ErrorCode::BadInput) const {
    throw Error(code, fmt::format("{}: {}", name_, message));
  }
  const std::string& format() const { return format_; }
  bool has(const std::string& key) const { return arrays_.count(key) != 0; }
  const Array& at(const std::string& key) const {
    const auto found = arrays_.find(key);
    if (found == arrays_.end())
      fail("the archive has no array " + key + "; was it written by scipy.sparse.save_npz?");
    return found->second;
  }
  // Returns an array, which must have that many dimensions and contain numbers.
  Line numbers(std::string_view key, std::size_t dimensions = 1) const {
    const Array& array = at(std::string(key));
    if (array.shape.size() != dimensions || array.type == ElementType::Text)
      fail(fmt::format("{} must be an array of numbers with {} dimension{}", key, dimensions,
                       dimensions == 1 ? "" : "s"));
    return {key, &array};
  }
  // Returns entry i of an array, which must be a whole number in [0, most].
  std::int64_t whole(Line line, std::size_t i, std::int64_t most,
                     ErrorCode code = ErrorCode::BadInput) const {
    const double value = line.array->values[i];
    if (value >= 0 && value <= double(most) && value == double(std::int64_t(value)))
      return std::int64_t(value);
    const bool is_above = value > double(most);
    fail(most < 0 ? fmt::format("{}[{}] is {}; the matrix has none", line.key, i, value)
                  : fmt::format("{}[{}] is {}; it must be a whole number in 0..{}", line.key, i,
                                value, most),
         is_above ? code : ErrorCode::BadInput);
  }
  std::int64_t unpacked_bytes() const { return unpacked_; }

 private:
  // Reads an array; returns false if the archive has none of that name.
  bool take(const std::string& key) {
    const std::string member = archive_.has(key) ? key : key + ".npy";
    if (!archive_.has(member)) return false;
    const std::string content = archive_.read(member);
    unpacked_ += std::int64_t(content.size());
    arrays_.emplace(key, read_npy(content, fmt::format("{}: {}", name_, key)));
    return true;
  }

  std::string_view name_;
  internal::Archive archive_;
  std::string format_;
  std::int64_t unpacked_ = 0;
  std::map<std::string, Array> arrays_;
};

// Adds the entries of csr, csc or bsr arrays to an empty matrix; their lines need not be sorted.
sparse::Coo<double> entries(const Arrays& a, sparse::Coo<double> matrix) {
  const Array& data = a.at("data");
  matrix.values = data.values;
  const std::int64_t blocks = data.shape[0];
  const bool by_column = a.format() == "csc";
  const std::int64_t lines = by_column ? matrix.cols : matrix.block_rows();
  const std::int64_t crosses = by_column ? matrix.rows : matrix.block_cols();
  const Line begin = a.numbers("indptr"), indices = a.numbers("indices");
  if (std::int64_t(begin.size()) != lines + 1)
    a.fail(fmt::format("indptr has {} entries; {} compressed rows or columns need {}", begin.size(),
                       lines, lines + 1));
  if (std::int64_t(indices.size()) < blocks || a.whole(begin, 0, blocks) != 0 ||
      a.whole(begin, std::size_t(lines), blocks) != blocks)
    a.fail(
        fmt::format("indptr must run from 0 to {}, the number of entries of data, and indices must "
                    "have that many entries",
                    blocks));
  for (std::int64_t l = 0; l < lines; ++l) {
    const std::int64_t first = a.whole(begin, std::size_t(l), blocks),
                       end = a.whole(begin, std::size_t(l) + 1, blocks);
    if (first > end) a.fail(fmt::format("indptr falls from {} to {} at {}", first, end, l + 1));
    for (std::int64_t i = first; i < end; ++i) {
      const auto cross = std::int32_t(a.whole(indices, std::size_t(i), crosses - 1));
      matrix.row.push_back(by_column ? cross : std::int32_t(l));
      matrix.col.push_back(by_column ? std::int32_t(l) : cross);
    }
  }
  return matrix;
}

sparse::Coo<double> coordinates(const Arrays& a, sparse::Coo<double> matrix) {
  matrix.values = a.at("data").values;
  const std::size_t n = matrix.values.size();
  const bool together = a.has("coords");
  const Line row = together ? a.numbers("coords", 2) : a.numbers("row");
  const Line col = together ? row : a.numbers("col");
  if (together && row.array->shape != std::vector<std::int64_t>{2, std::int64_t(n)})
    a.fail(fmt::format("coords must be 2 x {}", n));
  if (!together && (row.size() != n || col.size() != n))
    a.fail(fmt::format("row and col must have {} entries, like data", n));
  for (std::size_t i = 0; i < n; ++i) {
    matrix.row.push_back(std::int32_t(a.whole(row, i, matrix.rows - 1)));
    matrix.col.push_back(std::int32_t(a.whole(col, together ? n + i : i, matrix.cols - 1)));
  }
  return matrix;
}

// Checks the shape of the array data and returns the block that it implies.
BlockShape block_of(const Arrays& a) {
  if (a.format() != "bsr") {
    a.numbers("data");
    return {1, 1};
  }
  const std::vector<std::int64_t>& shape = a.numbers("data", 3).array->shape;
  if (shape[1] < 1 || shape[2] < 1)
    a.fail("data of a bsr matrix must be [blocks][rows][columns] with at least one row and column");
  return {shape[1], shape[2]};
}

sparse::Coo<double> empty_matrix(const Arrays& a, BlockShape block) {
  sparse::Coo<double> matrix;
  matrix.block = block;
  const Line shape = a.numbers("shape");
  if (shape.size() != 2) a.fail("shape must be two numbers");
  const std::int64_t most = internal::most_lines(a.unpacked_bytes());
  matrix.rows = a.whole(shape, 0, most, ErrorCode::LimitExceeded);
  matrix.cols = a.whole(shape, 1, most, ErrorCode::LimitExceeded);
  if (matrix.rows % block.rows != 0 || matrix.cols % block.cols != 0)
    a.fail(fmt::format("blocks of {} x {} do not divide {} x {}", block.rows, block.cols,
                       matrix.rows, matrix.cols));
  return matrix;
}

}  // namespace

bool can_read_npz() { return internal::can_unpack(); }

sparse::Csr<double> read_npz(std::string_view bytes, std::string_view name) {
  return read_npz(bytes, name, sparse::Duplicates::Refuse);
}

sparse::Csr<double> read_npz(std::string_view bytes, std::string_view name,
                             sparse::Duplicates duplicates) {
  const Arrays arrays(bytes, name);
  const sparse::Coo<double> empty = empty_matrix(arrays, block_of(arrays));
  sparse::Coo<double> matrix =
      arrays.format() == "coo" ? coordinates(arrays, empty) : entries(arrays, empty);
  try {
    // Compressed formats that give a place twice are damaged.
    const bool may_sum = arrays.format() == "coo";
    return sparse::with_block(to_csr(matrix, may_sum ? duplicates : sparse::Duplicates::Refuse),
                              BlockShape{1, 1});
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Internal) throw;
    arrays.fail(error.what());
  }
}

template <class T>
std::string write_npz(const sparse::Csr<T>& matrix) {
  const bool is_block = !matrix.block.is_element();
  std::string data = write_npy(matrix.values);
  if (is_block) {
    // The same elements under a shape of three sides: the header of a matrix [blocks][area] is
    // rewritten in place.
    const auto blocks = MatrixView<const T>{matrix.values.data(), matrix.blocks(),
                                            matrix.block.area(), matrix.block.area(), 1};
    data = write_npy(blocks);
    const std::string flat = fmt::format("({}, {}), }}", matrix.blocks(), matrix.block.area());
    const std::string cube =
        fmt::format("({}, {}, {}), }}", matrix.blocks(), matrix.block.rows, matrix.block.cols);
    const std::size_t at = data.find(flat);
    TESSERA_ASSERT(at != std::string::npos &&
                   data.compare(at + flat.size(), cube.size() - flat.size(),
                                std::string(cube.size() - flat.size(), ' ')) == 0);
    data.replace(at, cube.size(), cube);
  }
  // The format is a text array without dimensions, as SciPy writes it.
  std::string format = write_npy(std::vector<std::int32_t>{});
  const std::string numbers = "'<i4', 'fortran_order': False, 'shape': (0,), }",
                    letters = "'|S3', 'fortran_order': False, 'shape': (), }  ";
  format.replace(format.find(numbers), numbers.size(), letters);
  format += is_block ? "bsr" : "csr";
  return internal::pack(
      {{"indices.npy", write_npy(matrix.col)},
       {"indptr.npy", write_npy(matrix.row_begin)},
       {"format.npy", format},
       {"shape.npy", write_npy(std::vector<std::int64_t>{matrix.rows, matrix.cols})},
       {"data.npy", data}});
}

template std::string write_npz(const sparse::Csr<float>&);
template std::string write_npz(const sparse::Csr<double>&);

}  // namespace tessera::io
