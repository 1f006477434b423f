#include <cstdint>
#include <vector>

#include "tessera/arrays/mapped/mapped_array.hpp"
#include "tessera/arrays/ops/rearrange.hpp"
#include "tessera/arrays/row_sparse/cast_storage.hpp"
#include "tessera/arrays/tensor/contract.hpp"
#include "tessera/arrays/tensor/coo_tensor.hpp"
#include "tessera/arrays/tensor/sliced_csr.hpp"
#include "tessera/tests/fuzz/input_bytes.hpp"
#include "tessera/tests/fuzz/targets.hpp"

namespace tessera::fuzz {
namespace {

// Dimensions: mostly small, sometimes any number.
std::vector<std::int64_t> any_shape(InputBytes& bytes, std::int64_t most) {
  std::vector<std::int64_t> shape(std::size_t(bytes.number(0, most)));
  for (std::int64_t& length : shape)
    length = bytes.number(0, 15) == 0 ? bytes.any_number() : bytes.number(0, 5);
  return shape;
}

arrays::Selector any_selector(InputBytes& bytes) {
  switch (bytes.number(0, 4)) {
    case 0:
      return arrays::Point{bytes.any_number()};
    case 1:
      return arrays::Interval{bytes.any_number(), bytes.any_number()};
    case 2:
      return arrays::NewAxis{};
    case 3:
      return arrays::Specified{bytes.numbers<std::int64_t>(3, -6, 6)};
    default:
      return arrays::All{};
  }
}

arrays::MatrixSelector any_matrix_selector(InputBytes& bytes) {
  if (bytes.flag()) return arrays::Interval{bytes.any_number(), bytes.any_number()};
  if (bytes.flag()) return arrays::Point{bytes.any_number()};
  return arrays::All{};
}

std::optional<std::int64_t> any_bound(InputBytes& bytes) {
  return bytes.flag() ? std::optional(bytes.any_number()) : std::nullopt;
}

arrays::CooTensor<double> any_tensor(InputBytes& bytes) {
  const auto shape = any_shape(bytes, 4);
  std::vector<double> values = bytes.numbers<double>(8, -3, 3);
  std::vector<std::int32_t> indices(values.size() * shape.size());
  for (std::int32_t& index : indices) index = std::int32_t(bytes.number(-1, 5));
  if (bytes.number(0, 3) == 0) {
    const auto executor = make_executor(ExecutorKind::Threads, 1);
    return arrays::sum_duplicates(shape, indices, values, *executor);
  }
  return {shape, std::move(indices), std::move(values)};
}

void check_tensor(const arrays::CooTensor<double>& tensor) {
  const arrays::CooTensor<double> again(tensor.shape(), tensor.indices(), tensor.values());
  require(again == tensor, "a tensor is made again from its entries");
  require(tensor.clone() == tensor, "a clone equals its original");
}

}  // namespace

void coo_tensor(Input input) {
  InputBytes bytes(input);
  accepts([&] {
    arrays::CooTensor<double> tensor = any_tensor(bytes);
    check_tensor(tensor);
    accepts([&] {
      const auto part = tensor.select({any_selector(bytes), any_selector(bytes)});
      check_tensor(part);
    });
    accepts([&] {
      tensor.put(bytes.numbers<std::int64_t>(4, -6, 6), double(bytes.number(-2, 2)));
      check_tensor(tensor);
    });
    accepts([&] {
      const auto executor = make_executor(ExecutorKind::Threads, 1);
      const auto order = bytes.numbers<std::int64_t>(4, -1, 4);
      const auto moved = arrays::permute(tensor, order, *executor);
      require(moved.nnz() == tensor.nnz(), "a permutation keeps all entries");
      check_tensor(arrays::reshape(moved, {-1}, *executor));
    });
    accepts([&] { tensor.sort_by(bytes.numbers<std::int64_t>(4, -1, 4)); });
    accepts([&] {
      const auto a = bytes.numbers<std::int64_t>(2, -1, 3);
      const auto b = bytes.numbers<std::int64_t>(2, -1, 3);
      check_tensor(arrays::contract(tensor, a, any_tensor(bytes), b));
    });
  });
}

void sliced_csr(Input input) {
  InputBytes bytes(input);
  arrays::CsrArrays<float> parts;
  parts.rows = bytes.number(0, 9) == 0 ? bytes.any_number() : bytes.number(0, 6);
  parts.cols = bytes.number(0, 9) == 0 ? bytes.any_number() : bytes.number(0, 6);
  parts.values = bytes.numbers<float>(10, -3, 3);
  parts.columns = bytes.numbers<std::int32_t>(10, -1, 6);
  parts.row_begin = bytes.numbers<std::int64_t>(6, -1, 10);
  parts.row_end = bytes.numbers<std::int64_t>(6, -1, 10);
  if (bytes.flag()) parts.columns.resize(parts.values.size());
  accepts([&] {
    arrays::SlicedCsr<float> matrix(parts);
    accepts([&] {
      arrays::SlicedCsr<float> view =
          matrix.view(any_matrix_selector(bytes), any_matrix_selector(bytes));
      accepts(
          [&] { view.put(bytes.number(-7, 7), bytes.number(-7, 7), float(bytes.number(-1, 1))); });
      view.scale(2);
      require(view.clone().nnz() == view.nnz(), "a clone has the entries of its original");
    });
    require(matrix.nnz() == std::int64_t(matrix.columns().size()), "entries are counted");
  });
}

void row_sparse(Input input) {
  InputBytes bytes(input);
  arrays::RowSparse<double> array;
  array.shape = any_shape(bytes, 3);
  array.rows = bytes.numbers<std::int64_t>(5, -1, 6);
  array.values = bytes.numbers<double>(24, -3, 3);
  accepts([&] {
    arrays::check(array);
    if (array.shape[0] > 4096 || array.row_size() > 4096) return;
    const auto dense = arrays::to_dense(array);
    require(arrays::to_dense(arrays::to_row_sparse(dense)) == dense, "rows convert back");
    accepts([&] {
      const auto again = arrays::to_row_sparse(arrays::to_csr(array));
      require(arrays::to_dense(again) == dense, "a CSR converts back");
    });
  });
  accepts([&] {
    const arrays::DenseArray<double> data{any_shape(bytes, 3), bytes.numbers<double>(24, -3, 3)};
    arrays::check(arrays::row_sparse(data, bytes.numbers<std::int64_t>(5, -1, 6)));
  });
}

void mapped_array(Input input) {
  InputBytes bytes(input);
  accepts([&] {
    const arrays::Mapping mapping =
        bytes.flag() ? arrays::Mapping(any_shape(bytes, 4))
                     : arrays::Mapping(any_shape(bytes, 4), bytes.numbers<std::int64_t>(4, -1, 4),
                                       bytes.numbers<std::int64_t>(3, -1, 4));
    arrays::FlatCooStorage<double> storage{mapping.storage_shape(),
                                           bytes.numbers<std::int64_t>(8, -1, 60),
                                           bytes.numbers<double>(8, -3, 3)};
    const arrays::MappedArray<double> array(mapping, storage);
    accepts([&] {
      arrays::MappedArray<double> written = array;
      const auto index = bytes.numbers<std::int64_t>(4, -6, 6);
      written.put(index, 7, arrays::Missing::Insert);
      require(array.get(index) == 7, "what one array writes is seen by the other");
    });
    accepts([&] { array.get(bytes.numbers<std::int64_t>(4, -6, 6)); });
    accepts([&] {
      const arrays::Slice slice{any_bound(bytes), any_bound(bytes), any_bound(bytes)};
      const auto part = array.select({slice, arrays::Point{bytes.any_number()}});
      require(part.specified() <= array.specified(), "a part has no more entries than the whole");
    });
    accepts([&] { array.swapped(bytes.number(-5, 5), bytes.number(-5, 5)); });
  });
  const auto strides = bytes.numbers<std::int64_t>(3, -6, 6);
  std::vector<std::int64_t> shape = any_shape(bytes, 3);
  shape.resize(strides.size());
  accepts([&] { arrays::solve_index(strides, shape, bytes.any_number()); });
}

}  // namespace tessera::fuzz
