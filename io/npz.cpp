#include "tessera/io/npz.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/io/array.hpp"
#include "tessera/io/internal/archive.hpp"
#include "tessera/io/internal/text.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::io {
namespace {

// The arrays of an archive, with access functions that check them and fail with a message.
class Arrays {
 public:
  Arrays(std::string_view bytes, std::string_view name) : name_(name) {
    for (const auto& [member, content] : internal::unpack(bytes, name)) {
      unpacked_ += std::int64_t(content.size());
      const std::string key = member.size() > 4 && member.ends_with(".npy")
                                  ? member.substr(0, member.size() - 4)
                                  : member;
      arrays_.emplace(key, read_npy(content, fmt::format("{}: {}", name, key)));
    }
  }

  [[noreturn]] void fail(const std::string& message) const {
    throw Error(ErrorCode::BadInput, fmt::format("{}: {}", name_, message));
  }
  bool has(const std::string& key) const { return arrays_.count(key) != 0; }
  const Array& at(const std::string& key) const {
    const auto found = arrays_.find(key);
    if (found == arrays_.end())
      fail("the archive has no array " + key + "; was it written by scipy.sparse.save_npz?");
    return found->second;
  }
  // Returns the values of an array, which must have one dimension and contain numbers.
  const std::vector<double>& line(const std::string& key) const {
    const Array& array = at(key);
    if (array.shape.size() != 1 || array.type == ElementType::Text)
      fail(key + " must be a one-dimensional array of numbers");
    return array.values;
  }
  // Returns entry i of an array, which must be a whole number in [0, most].
  std::int64_t whole(const std::string& key, std::size_t i, std::int64_t most) const {
    const double value = line(key)[i];
    if (!(value >= 0 && value <= double(most)) || value != double(std::int64_t(value)))
      fail(fmt::format("{}[{}] is {}; it must be a whole number in 0..{}", key, i, value, most));
    return std::int64_t(value);
  }
  std::int64_t unpacked_bytes() const { return unpacked_; }

 private:
  std::string name_;
  std::int64_t unpacked_ = 0;
  std::map<std::string, Array> arrays_;
};

// Adds the entries of csr, csc or bsr arrays to an empty matrix; their lines need not be sorted.
sparse::Coo<double> entries(const Arrays& a, const std::string& format,
                            sparse::Coo<double> matrix) {
  const Array& data = a.at("data");
  matrix.values = data.values;
  const auto blocks = std::int64_t(data.shape.empty() ? 0 : data.shape[0]);
  const bool by_column = format == "csc";
  const std::int64_t lines = by_column ? matrix.cols : matrix.block_rows();
  const std::int64_t crosses = by_column ? matrix.rows : matrix.block_cols();
  const auto& begin = a.line("indptr");
  if (std::int64_t(begin.size()) != lines + 1)
    a.fail(fmt::format("indptr has {} entries; {} compressed rows or columns need {}", begin.size(),
                       lines, lines + 1));
  if (std::int64_t(a.line("indices").size()) < blocks || a.whole("indptr", 0, blocks) != 0 ||
      a.whole("indptr", std::size_t(lines), blocks) != blocks)
    a.fail(
        fmt::format("indptr must run from 0 to {}, the number of entries of data, and indices must "
                    "have that many entries",
                    blocks));
  for (std::int64_t l = 0; l < lines; ++l) {
    const std::int64_t first = a.whole("indptr", std::size_t(l), blocks),
                       end = a.whole("indptr", std::size_t(l) + 1, blocks);
    if (first > end) a.fail(fmt::format("indptr falls from {} to {} at {}", first, end, l + 1));
    for (std::int64_t i = first; i < end; ++i) {
      const auto cross = std::int32_t(a.whole("indices", std::size_t(i), crosses - 1));
      matrix.row.push_back(by_column ? cross : std::int32_t(l));
      matrix.col.push_back(by_column ? std::int32_t(l) : cross);
    }
  }
  return matrix;
}

sparse::Coo<double> coordinates(const Arrays& a, sparse::Coo<double> matrix) {
  matrix.values = a.line("data");
  const std::size_t n = matrix.values.size();
  const bool together = a.has("coords");
  if (together && (a.at("coords").shape != std::vector<std::int64_t>{2, std::int64_t(n)}))
    a.fail(fmt::format("coords must be 2 x {}", n));
  if (!together && (a.line("row").size() != n || a.line("col").size() != n))
    a.fail(fmt::format("row and col must have {} entries, like data", n));
  const auto place = [&](const char* key, std::size_t i, std::int64_t size) {
    if (!together) return std::int32_t(a.whole(key, i, size - 1));
    const double value = a.at("coords").values[i];
    if (!(value >= 0 && value < double(size)) || value != double(std::int64_t(value)))
      a.fail(fmt::format("coords entry {} is {}; it must be in 0..{}", i, value, size - 1));
    return std::int32_t(value);
  };
  for (std::size_t i = 0; i < n; ++i) {
    matrix.row.push_back(place("row", i, matrix.rows));
    matrix.col.push_back(place("col", together ? n + i : i, matrix.cols));
  }
  return matrix;
}

BlockShape block_of(const Arrays& a, const std::string& format) {
  const std::vector<std::int64_t>& shape = a.at("data").shape;
  if (format != "bsr") {
    a.line("data");
    return {1, 1};
  }
  if (shape.size() != 3 || shape[1] < 1 || shape[2] < 1)
    a.fail("data of a bsr matrix must be [blocks][rows][columns]");
  return {shape[1], shape[2]};
}

sparse::Coo<double> empty_matrix(const Arrays& a, BlockShape block) {
  sparse::Coo<double> matrix;
  matrix.block = block;
  if (a.line("shape").size() != 2) a.fail("shape must be two numbers");
  // The limit of the text readers: pointer arrays stay below 128 times the unpacked bytes.
  const std::int64_t most =
      std::min<std::int64_t>(INT32_MAX, std::max<std::int64_t>(1 << 20, 16 * a.unpacked_bytes()));
  matrix.rows = a.whole("shape", 0, most);
  matrix.cols = a.whole("shape", 1, most);
  if (matrix.rows % block.rows != 0 || matrix.cols % block.cols != 0)
    a.fail(fmt::format("blocks of {} x {} do not divide {} x {}", block.rows, block.cols,
                       matrix.rows, matrix.cols));
  return matrix;
}

}  // namespace

bool can_read_npz() { return internal::can_unpack(); }

sparse::Csr<double> read_npz(std::string_view bytes, std::string_view name) {
  const Arrays arrays(bytes, name);
  const Array& kind = arrays.at("format");
  const std::string format = kind.text.size() == 1 ? kind.text[0] : "";
  if (format != "csr" && format != "csc" && format != "bsr" && format != "coo")
    arrays.fail(
        fmt::format("format is {}; it must be csr, csc, bsr or coo", internal::quoted(format)));
  const sparse::Coo<double> empty = empty_matrix(arrays, block_of(arrays, format));
  sparse::Coo<double> matrix =
      format == "coo" ? coordinates(arrays, empty) : entries(arrays, format, empty);
  try {
    return sparse::with_block(to_csr(matrix), BlockShape{1, 1});
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
