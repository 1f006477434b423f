#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "tessera/arrays/mapped/mapped_array.hpp"
#include "tessera/arrays/ops/element.hpp"
#include "tessera/arrays/tensor/coo_tensor.hpp"
#include "tessera/arrays/tensor/sliced_csr.hpp"
#include "tessera/base/random.hpp"

namespace tessera::test {

using Shape = std::vector<std::int64_t>;

inline std::int64_t elements_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

inline Shape index_at(const Shape& shape, std::int64_t at) {
  Shape index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0; at /= shape[d]) index[d] = at % shape[d];
  return index;
}

inline std::int64_t position_at(const Shape& shape, const Shape& index) {
  std::int64_t at = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) at = at * shape[d] + index[d];
  return at;
}

// The reference of every test: all elements as doubles, row-major. It knows nothing of storages.
struct Dense {
  Shape shape;
  std::vector<double> values;
};

// An array, a view of it, and both as dense arrays: element i of the view is element places[i] of
// the whole.
template <class X>
struct Viewed {
  X whole;
  Dense truth;
  X view;
  Shape shape;
  std::vector<std::int64_t> places;

  Dense view_truth() const {
    Dense dense{shape, {}};
    for (const std::int64_t at : places) dense.values.push_back(truth.values[std::size_t(at)]);
    return dense;
  }

  // Keeps of the view the indices `kept` along `axis`.
  void keep(std::size_t axis, const Shape& kept) {
    Shape next = shape;
    next[axis] = std::ssize(kept);
    std::vector<std::int64_t> chosen;
    for (std::int64_t i = 0; i < elements_of(next); ++i) {
      Shape index = index_at(next, i);
      index[axis] = kept[std::size_t(index[axis])];
      chosen.push_back(places[std::size_t(position_at(shape, index))]);
    }
    shape = next;
    places = chosen;
  }
};

inline Shape random_shape(Random& random, std::int64_t rank, std::int64_t most = 5) {
  Shape shape;
  for (std::int64_t d = 0; d < rank; ++d) shape.push_back(1 + random.below(most));
  return shape;
}

// About a third of the elements are small whole numbers, the others zero, so that every type holds
// every result of a few operations exactly.
inline Dense random_dense(Random& random, Shape shape) {
  Dense dense{std::move(shape), {}};
  for (std::int64_t i = 0; i < elements_of(dense.shape); ++i)
    dense.values.push_back(random.below(3) == 0 ? double(random.below(9) - 4) : 0.0);
  return dense;
}

template <class T>
arrays::CooTensor<T> to_coo(const Dense& dense) {
  std::vector<std::int32_t> indices;
  std::vector<T> values;
  for (std::size_t i = 0; i < dense.values.size(); ++i) {
    if (dense.values[i] == 0) continue;
    for (const std::int64_t at : index_at(dense.shape, std::int64_t(i)))
      indices.push_back(std::int32_t(at));
    values.push_back(arrays::cast_value<T>(dense.values[i]));
  }
  return {dense.shape, indices, values};
}

template <class T>
arrays::DenseArray<T> to_array_of(const Dense& dense) {
  arrays::DenseArray<T> array{dense.shape, {}};
  for (const double v : dense.values) array.values.push_back(arrays::cast_value<T>(v));
  return array;
}

template <class X>
Viewed<X> viewed(X whole, Dense truth) {
  Viewed<X> result{whole, truth, whole, truth.shape, {}};
  for (std::int64_t i = 0; i < std::ssize(truth.values); ++i) result.places.push_back(i);
  return result;
}

inline Shape range_of(std::int64_t begin, std::int64_t end) {
  Shape range;
  for (std::int64_t i = begin; i < end; ++i) range.push_back(i);
  return range;
}

inline arrays::Interval random_interval(Random& random, std::int64_t length) {
  const std::int64_t begin = random.below(length);
  return {begin, begin + 1 + random.below(length - begin)};
}

// Chooses an overload of make().
template <class X>
struct Kind {};

template <class T>
Viewed<arrays::CooTensor<T>> make(Random& random, std::int64_t rank, Kind<arrays::CooTensor<T>>) {
  const Dense truth = random_dense(random, random_shape(random, rank));
  auto made = viewed(to_coo<T>(truth), truth);
  if (rank > 1 && random.below(2) == 0) {
    Shape order = range_of(0, rank);
    std::swap(order[0], order[std::size_t(random.below(rank))]);
    made.whole.sort_by(order);
  }
  for (std::int64_t depth = random.below(3); depth > 0; --depth) {
    std::vector<arrays::Selector> selectors;
    for (std::size_t d = 0; d < made.shape.size(); ++d) {
      selectors.push_back(arrays::All{});
      if (random.below(2) == 0) continue;
      const arrays::Interval part = random_interval(random, made.shape[d]);
      selectors.back() = part;
      made.keep(d, range_of(part.begin, part.end));
    }
    if (random.below(4) == 0 && made.shape.size() < 5) {
      selectors.insert(selectors.begin(), arrays::NewAxis{});
      made.shape.insert(made.shape.begin(), 1);
    }
    made.view = made.view.select(selectors);
  }
  return made;
}

template <class X>
Viewed<X> make_matrix(Random& random) {
  const Dense truth = random_dense(random, random_shape(random, 2, 7));
  X matrix(truth.shape[0], truth.shape[1]);
  for (std::int64_t i = 0; i < std::ssize(truth.values); ++i)
    matrix.put(i / truth.shape[1], i % truth.shape[1],
               arrays::cast_value<typename X::Value>(truth.values[std::size_t(i)]));
  auto made = viewed(matrix, truth);
  for (std::int64_t depth = random.below(3); depth > 0; --depth) {
    const arrays::Interval rows = random_interval(random, made.shape[0]),
                           cols = random_interval(random, made.shape[1]);
    made.view = made.view.view(rows, cols);
    made.keep(0, range_of(rows.begin, rows.end));
    made.keep(1, range_of(cols.begin, cols.end));
  }
  return made;
}
template <class T>
auto make(Random& random, std::int64_t, Kind<arrays::SlicedCsr<T>>) {
  return make_matrix<arrays::SlicedCsr<T>>(random);
}
template <class T>
auto make(Random& random, std::int64_t, Kind<arrays::SlicedCsc<T>>) {
  return make_matrix<arrays::SlicedCsc<T>>(random);
}

template <class T>
arrays::MappedArray<T> random_mapped(Random& random, const Dense& truth) {
  const auto rank = std::ssize(truth.shape);
  Shape order = range_of(0, rank), cuts;
  for (std::int64_t d = rank; d-- > 1;)
    std::swap(order[d], order[std::size_t(random.below(d + 1))]);
  const std::int64_t kind = random.below(5);
  for (std::int64_t cut = 1; cut < rank; ++cut)
    if (kind != 2 && random.below(2) == 0) cuts.push_back(cut);
  if (kind == 2 && rank > 1) cuts = {1 + random.below(rank - 1)};
  const arrays::Mapping mapping(truth.shape, order, cuts);
  const arrays::CooTensor<T> tensor = to_coo<T>(truth);
  if (kind == 0) return to_mapped(tensor, mapping, arrays::MappedKind::Strided);
  if (kind == 2 && rank > 1) return to_mapped(tensor, mapping, arrays::MappedKind::Csr);
  if (kind == 3) return to_mapped(tensor, mapping, arrays::MappedKind::Coo);
  const auto flat = to_mapped(tensor, mapping, arrays::MappedKind::FlatCoo);
  if (kind == 4)  // a mapped array as the storage of another one
    return arrays::MappedArray<T>(
        arrays::Mapping(flat.shape(), range_of(0, rank), range_of(1, rank)), flat);
  return flat;
}

template <class T>
auto make(Random& random, std::int64_t rank, Kind<arrays::MappedArray<T>>) {
  const Dense truth = random_dense(random, random_shape(random, rank));
  auto made = viewed(random_mapped<T>(random, truth), truth);
  for (std::int64_t depth = random.below(3); depth > 0; --depth) {
    std::vector<arrays::AxisSelector> selectors;
    for (std::size_t d = 0; d < made.shape.size(); ++d) {
      selectors.push_back(arrays::All{});
      if (random.below(2) == 0) continue;
      const std::int64_t step = random.below(2) == 0 ? 1 + random.below(2) : -1 - random.below(2);
      const arrays::Slice slice{std::nullopt, std::nullopt, step};
      const arrays::Progression kept = slice.reduced(made.shape[d]);
      Shape indices;
      for (std::int64_t i = 0; i < kept.count; ++i) indices.push_back(kept[i]);
      selectors.back() = slice;
      made.keep(d, indices);
    }
    made.view = made.view.select(selectors);
  }
  return made;
}

template <class T>
double element(const arrays::CooTensor<T>& x, const Shape& index) {
  return arrays::cast_value<double>(x.get(index));
}
template <class T>
double element(const arrays::SlicedCsr<T>& x, const Shape& index) {
  return arrays::cast_value<double>(x.get(index[0], index[1]));
}
template <class T>
double element(const arrays::SlicedCsc<T>& x, const Shape& index) {
  return arrays::cast_value<double>(x.get(index[0], index[1]));
}
template <class T>
double element(const arrays::MappedArray<T>& x, const Shape& index) {
  return arrays::cast_value<double>(*x.get(index));
}
template <class T>
double element(const arrays::DenseArray<T>& x, const Shape& index) {
  return arrays::cast_value<double>(x.values[std::size_t(position_at(x.shape, index))]);
}

template <class T>
Shape shape_of_any(const arrays::CooTensor<T>& x) {
  return x.shape();
}
template <class T>
Shape shape_of_any(const arrays::SlicedCsr<T>& x) {
  return {x.rows(), x.cols()};
}
template <class T>
Shape shape_of_any(const arrays::SlicedCsc<T>& x) {
  return {x.rows(), x.cols()};
}
template <class T>
Shape shape_of_any(const arrays::MappedArray<T>& x) {
  return x.shape();
}
template <class T>
Shape shape_of_any(const arrays::DenseArray<T>& x) {
  return x.shape;
}

// Reads an array element by element.
template <class X>
Dense read(const X& x) {
  Dense dense{shape_of_any(x), {}};
  for (std::int64_t i = 0; i < elements_of(dense.shape); ++i)
    dense.values.push_back(element(x, index_at(dense.shape, i)));
  return dense;
}

}  // namespace tessera::test
