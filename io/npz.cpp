#include "tessera/io/npz.hpp"

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/input_file.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/io/array.hpp"
#include "tessera/io/internal/npy_reader.hpp"
#include "tessera/io/internal/npz_file.hpp"
#include "tessera/io/internal/text.hpp"
#include "tessera/io/internal/zip.hpp"
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

internal::NpyReader reader_of(const std::string& member, const internal::ZipArchive& archive,
                              const std::string& name) {
  // The numbers of an array that is packed well get their memory as they come.
  constexpr std::int64_t kReservedPerByte = 8;
  return internal::NpyReader(name, archive.declared_bytes(member),
                             kReservedPerByte * archive.packed_bytes());
}

// Reads the type and the shape of an array, whose numbers are taken later.
internal::NpyReader start_of(const std::string& member, internal::ZipArchive& archive,
                             const std::string& name) {
  internal::NpyReader reader = reader_of(member, archive, name);
  bool has_piece = false;
  archive.read_pieces(member, [&](std::string_view piece) {
    reader.add(piece);
    has_piece = true;
    return false;
  });
  if (!has_piece) reader.add({});
  return reader;
}

// The arrays that the format of an archive needs, with access functions that check them and fail
// with a message. An array is unpacked when it is taken; other files of the archive stay packed.
class Arrays {
 public:
  Arrays(internal::ZipArchive& archive, std::string_view name) : name_(name), archive_(archive) {
    take_text("format");
    const Array& kind = at("format");
    format_ = kind.text.size() == 1 ? kind.text[0] : "";
    if (format_ != "csr" && format_ != "csc" && format_ != "bsr" && format_ != "coo")
      fail(fmt::format("format is {}; it must be csr, csc, bsr or coo", internal::quoted(format_)));
    take("shape");
    if (format_ != "coo") {
      take("indptr");
      take("indices");
      peek("data");
      return;
    }
    take("data");
    if (!take("coords"))
      for (const char* const key : {"row", "col"}) take(key);
  }

  [[noreturn]] void fail(const std::string& message, ErrorCode code = ErrorCode::BadInput) const {
    throw_fault_of_file(code, fmt::format("{}: {}", name_, message));
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

  // Returns the bytes that the archive declares for the values, which must be there.
  std::int64_t declared_data_bytes() const {
    at("data");
    return archive_.declared_bytes(member_of("data"));
  }

  // Reads an array; returns false if the archive has none of that name.
  bool take(const std::string& key) {
    const std::string member = member_of(key);
    if (member.empty()) return false;
    internal::NpyReader reader = reader_of(member, archive_, fmt::format("{}: {}", name_, key));
    bool has_piece = false;
    archive_.read_pieces(member, [&](std::string_view piece) {
      reader.add(piece);
      return has_piece = true;
    });
    if (!has_piece) reader.add({});
    unpacked_ += archive_.declared_bytes(member);
    arrays_.insert_or_assign(key, std::move(reader).finish());
    return true;
  }

  // Returns the numbers of an array, which is then empty.
  std::vector<double> move_numbers(std::string_view key) {
    return std::move(arrays_.at(std::string(key)).values);
  }

 private:
  // Returns the name of an array's file in the archive; it is empty if there is none.
  std::string member_of(const std::string& key) const {
    const std::string member = archive_.has(key) ? key : key + ".npy";
    return archive_.has(member) ? member : "";
  }
  void take_text(const std::string& key) {
    const std::string member = member_of(key);
    if (member.empty()) return;
    const std::string content = archive_.read(member);
    unpacked_ += std::int64_t(content.size());
    arrays_.emplace(key, read_npy(content, fmt::format("{}: {}", name_, key)));
  }
  void peek(const std::string& key) {
    const std::string member = member_of(key);
    if (member.empty()) return;
    const internal::NpyReader start = start_of(member, archive_, fmt::format("{}: {}", name_, key));
    arrays_.insert_or_assign(key, Array{start.array().type, start.array().shape, {}, {}});
  }

  std::string_view name_;
  internal::ZipArchive& archive_;
  std::string format_;
  std::int64_t unpacked_ = 0;
  std::map<std::string, Array> arrays_;
};

// The places of a compressed format: line l has the entries [begin[l], begin[l + 1]) of `cross`.
// Lines are rows of blocks, or columns in csc; entries of a line may be in any order.
struct CompressedLines {
  std::vector<std::int64_t> begin;
  std::vector<std::int32_t> cross;

  // Returns whether the entries of every line ascend.
  bool is_in_order() const {
    for (std::size_t l = 0; l + 1 < begin.size(); ++l)
      for (std::int64_t i = begin[l] + 1; i < begin[l + 1]; ++i)
        if (cross[std::size_t(i)] <= cross[std::size_t(i) - 1]) return false;
    return true;
  }
};

CompressedLines lines_of(const Arrays& a, std::int64_t lines, std::int64_t crosses) {
  const std::int64_t blocks = a.at("data").shape[0];
  const Line begin = a.numbers("indptr"), indices = a.numbers("indices");
  if (std::int64_t(begin.size()) - 1 != lines)
    a.fail(fmt::format("indptr has {} entries; {} compressed rows or columns need {}", begin.size(),
                       lines, lines + 1));
  if (std::int64_t(indices.size()) < blocks || a.whole(begin, 0, blocks) != 0 ||
      a.whole(begin, std::size_t(lines), blocks) != blocks)
    a.fail(
        fmt::format("indptr must run from 0 to {}, the number of entries of data, and indices must "
                    "have that many entries",
                    blocks));
  CompressedLines result;
  result.begin.reserve(begin.size());
  result.cross.reserve(std::size_t(blocks));
  result.begin.push_back(0);
  for (std::int64_t l = 0; l < lines; ++l) {
    const std::int64_t first = result.begin.back(),
                       end = a.whole(begin, std::size_t(l) + 1, blocks);
    if (first > end) a.fail(fmt::format("indptr falls from {} to {} at {}", first, end, l + 1));
    for (std::int64_t i = first; i < end; ++i)
      result.cross.push_back(std::int32_t(a.whole(indices, std::size_t(i), crosses - 1)));
    result.begin.push_back(end);
  }
  return result;
}

// Adds the entries of lines to an empty matrix.
sparse::Coo<double> entries(const CompressedLines& lines, bool by_column,
                            sparse::Coo<double> matrix) {
  std::vector<std::int32_t> along;
  along.reserve(lines.cross.size());
  for (std::size_t l = 0; l + 1 < lines.begin.size(); ++l)
    along.insert(along.end(), std::size_t(lines.begin[l + 1] - lines.begin[l]), std::int32_t(l));
  matrix.row = by_column ? lines.cross : along;
  matrix.col = by_column ? along : lines.cross;
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

// Returns a matrix of the shape, which `bytes` of arrays must justify.
sparse::Coo<double> empty_matrix(const Arrays& a, BlockShape block, std::int64_t bytes) {
  sparse::Coo<double> matrix;
  matrix.block = block;
  const Line shape = a.numbers("shape");
  if (shape.size() != 2) a.fail("shape must be two numbers");
  const std::int64_t most = internal::most_lines(bytes);
  matrix.rows = a.whole(shape, 0, most, ErrorCode::LimitExceeded);
  matrix.cols = a.whole(shape, 1, most, ErrorCode::LimitExceeded);
  if (matrix.rows % block.rows != 0 || matrix.cols % block.cols != 0)
    a.fail(fmt::format("blocks of {} x {} do not divide {} x {}", block.rows, block.cols,
                       matrix.rows, matrix.cols));
  return matrix;
}

// Returns a matrix in blocks. Numbers of the indices are gone before the values are unpacked, so a
// csr whose rows are in order takes no more memory than the matrix.
sparse::Csr<double> in_blocks(Arrays& a, BlockShape block, sparse::Duplicates duplicates) {
  if (a.format() == "coo")
    return to_csr(coordinates(a, empty_matrix(a, block, a.unpacked_bytes())), duplicates);
  const bool by_column = a.format() == "csc";
  const sparse::Coo<double> shape =
      empty_matrix(a, block, a.unpacked_bytes() + a.declared_data_bytes());
  CompressedLines lines = lines_of(a, by_column ? shape.cols : shape.block_rows(),
                                   by_column ? shape.rows : shape.block_cols());
  for (const char* const key : {"indptr", "indices"}) a.move_numbers(key);
  a.take("data");
  sparse::Coo<double> matrix = empty_matrix(a, block, a.unpacked_bytes());
  if (!by_column && lines.is_in_order())
    return {matrix.rows,
            matrix.cols,
            matrix.block,
            std::move(lines.begin),
            std::move(lines.cross),
            a.move_numbers("data")};
  matrix.values = a.move_numbers("data");
  return to_csr(entries(lines, by_column, std::move(matrix)), duplicates);
}

sparse::Csr<double> read(internal::ZipArchive& archive, std::string_view name,
                         sparse::Duplicates duplicates) {
  Arrays arrays(archive, name);
  const BlockShape block = block_of(arrays);
  try {
    sparse::Csr<double> matrix = in_blocks(arrays, block, duplicates);
    if (!block.is_element()) matrix = sparse::with_block(matrix, BlockShape{1, 1});
    return matrix;
  } catch (const Error& error) {
    const std::string_view message = error.what();
    if (error.code() == ErrorCode::Internal || message.starts_with(name)) throw;
    arrays.fail(error.what());
  }
}

}  // namespace

bool can_read_npz() { return internal::can_unpack(); }

sparse::Csr<double> read_npz(std::string_view bytes, std::string_view name) {
  return read_npz(bytes, name, sparse::Duplicates::Refuse);
}

sparse::Csr<double> read_npz(std::string_view bytes, std::string_view name,
                             sparse::Duplicates duplicates) {
  internal::ZipArchive archive(bytes, name);
  return read(archive, name, duplicates);
}

sparse::Csr<double> internal::read_npz_file(const std::string& path,
                                            sparse::Duplicates duplicates) {
  const InputFile file(path);
  ZipArchive archive(file, path);
  return read(archive, path, duplicates);
}

ElementType internal::npz_data_type(const std::string& path) {
  const InputFile file(path);
  ZipArchive archive(file, path);
  const NpyReader reader = start_of("data.npy", archive, path);
  return reader.array().type;
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
