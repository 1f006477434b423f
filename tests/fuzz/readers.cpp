#include <cmath>
#include <string>

#include "tessera/io/array.hpp"
#include "tessera/io/internal/zip.hpp"
#include "tessera/io/npz.hpp"
#include "tessera/io/read.hpp"
#include "tessera/io/write.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/tests/fuzz/input_bytes.hpp"
#include "tessera/tests/fuzz/targets.hpp"

namespace tessera::fuzz {
namespace {

std::string_view text_of(Input input) { return InputBytes(input).rest(); }

bool same_bits(const sparse::Csr<double>& a, const sparse::Csr<double>& b) {
  if (a.rows != b.rows || a.cols != b.cols || a.row_begin != b.row_begin || a.col != b.col)
    return false;
  for (std::size_t i = 0; i < a.values.size(); ++i)
    if (a.values[i] != b.values[i] && !(std::isnan(a.values[i]) && std::isnan(b.values[i])))
      return false;
  return true;
}

// Sizes that a file of a few bytes may declare; larger ones have no written form to compare.
bool is_small(const sparse::Csr<double>& matrix) {
  return matrix.rows <= 1 << 16 && matrix.cols <= 1 << 16;
}

void check_matrix(const sparse::Csr<double>& matrix) {
  sparse::check(matrix);
  require(matrix.block.is_element(), "readers return elements");
  if (!is_small(matrix)) return;
  const io::ReadMatrix again = io::read_mtx(io::write_mtx(matrix), "written");
  require(same_bits(again.matrix, matrix), "what is written is read again");
}

void check_array(const io::Array& array) {
  std::int64_t elements = 1;
  for (const std::int64_t length : array.shape) elements *= length;
  const std::size_t stored =
      array.type == io::ElementType::Text ? array.text.size() : array.values.size();
  require(std::int64_t(stored) == elements, "an array has as many elements as its shape says");
  if (array.shape.size() == 2) accepts([&] { check_matrix(io::to_csr(array, "input")); });
}

}  // namespace

void read_mtx(Input input) {
  accepts([&] { check_matrix(io::read_mtx(text_of(input), "input").matrix); });
}

void read_smtx(Input input) {
  accepts([&] { check_matrix(io::read_smtx(text_of(input), "input").matrix); });
}

void read_mask(Input input) {
  accepts([&] { check_matrix(io::read_mask(text_of(input), "input").matrix); });
}

void read_npy(Input input) {
  accepts([&] { check_array(io::read_npy(text_of(input), "input")); });
}

void read_npz(Input input) {
  if (!io::can_read_npz()) return;
  accepts([&] { check_matrix(io::read_npz(text_of(input), "input")); });
}

void read_safetensors(Input input) {
  accepts([&] {
    for (const io::TensorInfo& tensor : io::list_safetensors(text_of(input), "input"))
      accepts([&] { check_array(io::read_safetensors(text_of(input), "input", tensor.name)); });
  });
  accepts([&] { check_array(io::read_safetensors(text_of(input), "input", "")); });
}

namespace {

// A one-dimensional array of a few types, or a piece of the input as it is.
std::string array_of(InputBytes& bytes) {
  switch (bytes.number(0, 5)) {
    case 0:
      return io::write_npy(bytes.numbers<std::int32_t>(12, -1, 8));
    case 1:
      return io::write_npy(bytes.numbers<std::int64_t>(12, -1, 8));
    case 2:
      return io::write_npy(bytes.numbers<double>(12, -3, 3));
    case 3:
      return io::write_npy(std::vector<std::int64_t>{bytes.any_number(), bytes.any_number()});
    case 4: {
      Matrix<float> matrix(bytes.number(0, 4), bytes.number(0, 4));
      for (float& value : matrix.elements()) value = float(bytes.number(-3, 3));
      return io::write_npy(MatrixView<const float>(matrix.view()));
    }
    default: {
      const std::vector<char> raw = bytes.numbers<char>(200, 0, 255);
      return std::string(raw.begin(), raw.end());
    }
  }
}

// A text of NumPy, as the name of a format is stored.
std::string text_array(std::string_view text) {
  std::string header =
      "{'descr': '|S" + std::to_string(text.size()) + "', 'fortran_order': False, 'shape': (), }";
  header.append(64 - (10 + header.size() + 1) % 64, ' ').push_back('\n');
  std::string file("\x93NUMPY\x01\x00", 8);
  file.push_back(char(header.size() & 255));
  file.push_back(char(header.size() >> 8));
  return file + header + std::string(text);
}

}  // namespace

void read_npz_arrays(Input input) {
  if (!io::can_read_npz()) return;
  InputBytes bytes(input);
  constexpr std::string_view kFormats[] = {"csr", "csc", "coo", "bsr", "dia"};
  const auto format = kFormats[std::size_t(bytes.number(0, 4))];
  io::internal::Members members = {{"format.npy", text_array(format)}};
  for (const char* name : {"shape", "data", "indices", "indptr", "row", "col", "coords"}) {
    if (bytes.number(0, 3) == 0) continue;
    const bool is_text = bytes.number(0, 15) == 0;
    members.emplace_back(std::string(name) + ".npy", is_text ? text_array("1,2") : array_of(bytes));
  }
  const std::string archive = io::internal::pack(members);
  accepts([&] { check_matrix(io::read_npz(archive, "input")); });
}

}  // namespace tessera::fuzz
