#include "tessera/arrays/tensor/contract.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "tessera/arrays/tensor/internal/coo_access.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/radix_sort.hpp"

namespace tessera::arrays {
namespace {

// Numbers the places of some dimensions of a view, the last dimension fastest.
struct Places {
  std::vector<ViewAxis> axes;
  std::int64_t count = 1;

  std::uint64_t at(const std::int32_t* index) const {
    std::int64_t place = 0;
    for (const ViewAxis& axis : axes) place = place * axis.length + internal::along(axis, index);
    return static_cast<std::uint64_t>(place);
  }

  // Writes the indices of a place to to[0 .. axes.size()).
  void write(std::uint64_t place, std::int32_t* to) const {
    for (std::size_t i = axes.size(); i-- > 0;) {
      const auto length = static_cast<std::uint64_t>(axes[i].length);
      to[i] = static_cast<std::int32_t>(place % length);
      place /= length;
    }
  }
  int bits() const {
    return count <= 1 ? 0 : static_cast<int>(std::bit_width(std::uint64_t(count - 1)));
  }
};

Places places_of(const std::vector<ViewAxis>& axes, const std::vector<std::size_t>& dims) {
  Places places;
  for (const std::size_t d : dims) {
    places.axes.push_back(axes[d]);
    places.count = checked_mul(places.count, axes[d].length, "places of a contraction");
  }
  return places;
}

// The dimensions of one operand: those that remain in the result and those that are summed over.
struct Operand {
  Places free, summed;
};

template <class T>
Operand operand_of(const CooTensor<T>& tensor, const std::vector<std::int64_t>& dims) {
  const std::vector<ViewAxis> axes = tensor.layout().axes();
  const auto rank = static_cast<std::int64_t>(axes.size());
  std::vector<std::size_t> summed, free;
  std::vector<bool> is_summed(axes.size(), false);
  for (const std::int64_t given : dims) {
    const std::int64_t d = given < 0 ? given + rank : given;
    if (d < 0 || d >= rank || is_summed[std::size_t(d)])
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("contract: dimension {} is not there or named twice; a tensor of "
                              "rank {} has dimensions 0..{}",
                              given, rank, rank - 1));
    is_summed[std::size_t(d)] = true;
    summed.push_back(std::size_t(d));
  }
  for (std::size_t d = 0; d < axes.size(); ++d)
    if (!is_summed[d]) free.push_back(d);
  return {places_of(axes, free), places_of(axes, summed)};
}

// An entry of an operand. Its value is sorted together with its places, so that no value has to be
// fetched from a distant address after the sort.
template <class T>
struct Term {
  std::uint64_t free = 0, summed = 0;
  T value = 0;
};

template <class T>
std::vector<Term<T>> terms_of(const CooTensor<T>& tensor, const Operand& operand) {
  std::vector<Term<T>> terms;
  internal::visit(tensor, [&](const std::int32_t* index, T value) {
    terms.push_back({operand.free.at(index), operand.summed.at(index), value});
  });
  return terms;
}

// A product or partial sum; its place is one of the free dimensions of b.
struct Product {
  std::uint64_t place = 0;
  double value = 0;
};

// Adds up products of equal place, in the order in which they were added.
class RowSums {
 public:
  explicit RowSums(int place_bits) : place_bits_(place_bits) {}

  void add(std::uint64_t place, double value) {
    is_ascending_ = is_ascending_ && (products_.empty() || products_.back().place <= place);
    products_.push_back({place, value});
    // Summing early keeps memory within a multiple of the distinct places and leaves the order of
    // additions unchanged.
    if (products_.size() >= compress_at_) {
      compress();
      compress_at_ = std::max(kCompressAt, 2 * products_.size());
    }
  }

  // Returns the sums by ascending place, one for each place. The result is valid until clear().
  const std::vector<Product>& finish() {
    compress();
    return products_;
  }
  void clear() {
    products_.clear();
    compress_at_ = kCompressAt;
    is_ascending_ = true;
  }

 private:
  static constexpr std::size_t kCompressAt = std::size_t{1} << 16;

  void compress() {
    if (!is_ascending_)
      radix_sort(products_, scratch_, place_bits_, [](const Product& p) { return p.place; });
    is_ascending_ = true;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < products_.size(); ++i) {
      if (kept > 0 && products_[kept - 1].place == products_[i].place)
        products_[kept - 1].value += products_[i].value;
      else
        products_[kept++] = products_[i];
    }
    products_.resize(kept);
  }

  int place_bits_;
  std::size_t compress_at_ = kCompressAt;
  bool is_ascending_ = true;
  std::vector<Product> products_, scratch_;
};

// The result under construction; its entries are added in natural order.
template <class T>
struct Result {
  std::vector<std::int64_t> shape;
  std::vector<std::int32_t> indices;
  std::vector<T> values;

  Result(const Places& a, const Places& b) {
    for (const Places* places : {&a, &b})
      for (const ViewAxis& axis : places->axes) shape.push_back(axis.length);
  }
  void add(const Places& a, std::uint64_t a_place, const Places& b,
           const std::vector<Product>& row) {
    for (const Product& product : row) {
      const std::size_t at = indices.size();
      indices.resize(at + shape.size());
      if (&product == &row.front())
        a.write(a_place, indices.data() + at);
      else  // the indices of `a` equal those of the entry before
        std::copy_n(indices.data() + at - shape.size(), a.axes.size(), indices.data() + at);
      b.write(product.place, indices.data() + at + a.axes.size());
      values.push_back(static_cast<T>(product.value));
    }
  }
  CooTensor<T> finish() {
    indices.shrink_to_fit(), values.shrink_to_fit();
    return internal::CooAccess<T>::from_sorted(std::move(shape), std::move(indices),
                                               std::move(values));
  }
};

// Returns the first entry of each row of b, and the end of b. A row consists of the entries with
// one summed place; b is sorted by summed place.
template <class T>
std::vector<std::size_t> row_starts(const std::vector<Term<T>>& b) {
  std::vector<std::size_t> starts;
  for (std::size_t k = 0; k < b.size(); ++k)
    if (k == 0 || b[k].summed != b[k - 1].summed) starts.push_back(k);
  starts.push_back(b.size());
  return starts;
}

// Replaces the summed place of each term of `a` by the number of the row of `b` that it multiplies,
// and drops terms without such a row. Both operands are sorted by summed place.
template <class T>
void join(const std::vector<Term<T>>& b, const std::vector<std::size_t>& starts,
          std::vector<Term<T>>& a) {
  std::size_t row = 0, kept = 0;
  for (const Term<T>& term : a) {
    while (row + 1 < starts.size() && b[starts[row]].summed < term.summed) ++row;
    if (row + 1 == starts.size()) break;
    if (b[starts[row]].summed == term.summed) a[kept++] = {term.free, row, term.value};
  }
  a.resize(kept);
}

void require_matching(const Places& a, const Places& b) {
  if (a.axes.size() != b.axes.size())
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("contract: {} dimensions are joined with {}; they come in pairs",
                            a.axes.size(), b.axes.size()));
  for (std::size_t i = 0; i < a.axes.size(); ++i)
    if (a.axes[i].length != b.axes[i].length)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("contract: pair {} joins dimensions of length {} and {}; they must "
                              "be equal",
                              i, a.axes[i].length, b.axes[i].length));
}

template <class T>
std::uint64_t free_of(const Term<T>& term) {
  return term.free;
}
template <class T>
std::uint64_t summed_of(const Term<T>& term) {
  return term.summed;
}

}  // namespace

template <class T>
CooTensor<T> contract(const CooTensor<T>& a, const std::vector<std::int64_t>& a_dims,
                      const CooTensor<T>& b, const std::vector<std::int64_t>& b_dims) {
  const Operand of_a = operand_of(a, a_dims), of_b = operand_of(b, b_dims);
  require_matching(of_a.summed, of_b.summed);
  std::vector<Term<T>> left = terms_of(a, of_a), right = terms_of(b, of_b), scratch;
  radix_sort(right, scratch, of_b.free.bits(), free_of<T>);
  radix_sort(right, scratch, of_b.summed.bits(), summed_of<T>);
  radix_sort(left, scratch, of_a.summed.bits(), summed_of<T>);
  const std::vector<std::size_t> starts = row_starts(right);
  join(right, starts, left);
  radix_sort(left, scratch, of_a.free.bits(), free_of<T>);

  Result<T> result(of_a.free, of_b.free);
  RowSums sums(of_b.free.bits());
  for (std::size_t k = 0; k < left.size();) {
    const std::uint64_t place = left[k].free;
    for (; k < left.size() && left[k].free == place; ++k)
      for (std::size_t i = starts[left[k].summed]; i < starts[left[k].summed + 1]; ++i)
        sums.add(right[i].free, double(left[k].value) * double(right[i].value));
    result.add(of_a.free, place, of_b.free, sums.finish());
    sums.clear();
  }
  return result.finish();
}

template <class T>
CooTensor<T> contract(const CooTensor<T>& a, const std::vector<std::int64_t>& dims,
                      std::span<const T> dense) {
  const Operand of_a = operand_of(a, dims);
  if (of_a.summed.count != static_cast<std::int64_t>(dense.size()))
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("contract: the summed dimensions have {} places and the dense operand "
                            "{} values; give one value for each place",
                            of_a.summed.count, dense.size()));
  std::vector<Term<T>> terms = terms_of(a, of_a), scratch;
  radix_sort(terms, scratch, of_a.summed.bits(), summed_of<T>);
  radix_sort(terms, scratch, of_a.free.bits(), free_of<T>);
  const Places none;
  Result<T> result(of_a.free, none);
  std::vector<Product> sum(1);
  for (std::size_t k = 0; k < terms.size();) {
    const std::uint64_t place = terms[k].free;
    sum.front().value = 0;
    for (; k < terms.size() && terms[k].free == place; ++k)
      sum.front().value += double(terms[k].value) * double(dense[terms[k].summed]);
    result.add(of_a.free, place, none, sum);
  }
  return result.finish();
}

template CooTensor<float> contract(const CooTensor<float>&, const std::vector<std::int64_t>&,
                                   const CooTensor<float>&, const std::vector<std::int64_t>&);
template CooTensor<double> contract(const CooTensor<double>&, const std::vector<std::int64_t>&,
                                    const CooTensor<double>&, const std::vector<std::int64_t>&);
template CooTensor<float> contract(const CooTensor<float>&, const std::vector<std::int64_t>&,
                                   std::span<const float>);
template CooTensor<double> contract(const CooTensor<double>&, const std::vector<std::int64_t>&,
                                    std::span<const double>);

}  // namespace tessera::arrays
