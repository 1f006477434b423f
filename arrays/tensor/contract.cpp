#include "tessera/arrays/tensor/contract.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tessera/arrays/internal/exact.hpp"
#include "tessera/arrays/internal/row_product.hpp"
#include "tessera/arrays/tensor/internal/contract_terms.hpp"
#include "tessera/arrays/tensor/internal/coo_access.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/radix_sort.hpp"

namespace tessera::arrays {
namespace {

using internal::free_of;
using internal::Operand;
using internal::operand_of;
using internal::Places;
using internal::require_matching;
using internal::summed_of;
using internal::Term;
using internal::terms_of;

// A product or partial sum; its place is one of the free dimensions of b. Sum is double or, for
// integers, an integer of 128 bits.
template <class Sum>
struct Product {
  std::uint64_t place = 0;
  Sum value = Sum(0);
};

// Adds up products of equal place, in the order in which they were added.
template <class Sum>
class RowSums {
 public:
  explicit RowSums(int place_bits) : place_bits_(place_bits) {}

  void add(std::uint64_t place, Sum value) {
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
  const std::vector<Product<Sum>>& finish() {
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
      radix_sort(products_, scratch_, place_bits_, [](const Product<Sum>& p) { return p.place; });
    is_ascending_ = true;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < products_.size(); ++i) {
      if (kept > 0 && products_[kept - 1].place == products_[i].place)
        internal::add_exactly(products_[kept - 1].value, products_[i].value);
      else
        products_[kept++] = products_[i];
    }
    products_.resize(kept);
  }

  int place_bits_;
  std::size_t compress_at_ = kCompressAt;
  bool is_ascending_ = true;
  std::vector<Product<Sum>> products_, scratch_;
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
           const std::vector<Product<internal::Total<T>>>& row) {
    for (const auto& product : row) {
      const std::size_t at = indices.size();
      indices.resize(at + shape.size());
      if (&product == &row.front())
        a.write(a_place, indices.data() + at);
      else  // the indices of `a` equal those of the entry before
        std::copy_n(indices.data() + at - shape.size(), a.axes.size(), indices.data() + at);
      b.write(product.place, indices.data() + at + a.axes.size());
      values.push_back(internal::narrow<T>(product.value));
    }
  }
  // Appends the entries of a result of later rows.
  void append(const Result& later) {
    indices.insert(indices.end(), later.indices.begin(), later.indices.end());
    values.insert(values.end(), later.values.begin(), later.values.end());
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

// Returns the first terms of parts of some thousand terms, and the end. A row, which consists of
// the terms of one free place, is in one part.
template <class T>
std::vector<std::size_t> row_parts(const std::vector<Term<T>>& terms) {
  constexpr std::size_t kTerms = 4096;
  std::vector<std::size_t> parts = {0};
  for (std::size_t k = kTerms; k < terms.size(); k += kTerms) {
    while (k < terms.size() && terms[k].free == terms[k - 1].free) ++k;
    if (k < terms.size()) parts.push_back(k);
  }
  parts.push_back(terms.size());
  return parts;
}

}  // namespace

template <class T>
CooTensor<T> contract(const CooTensor<T>& a, const std::vector<std::int64_t>& a_dims,
                      const CooTensor<T>& b, const std::vector<std::int64_t>& b_dims) {
  internal::Serial serial;
  return contract(a, a_dims, b, b_dims, serial);
}

template <class T>
CooTensor<T> contract(const CooTensor<T>& a, const std::vector<std::int64_t>& a_dims,
                      const CooTensor<T>& b, const std::vector<std::int64_t>& b_dims,
                      Executor& executor) {
  using Sum = internal::Total<T>;
  const Operand of_a = operand_of(a, a_dims), of_b = operand_of(b, b_dims);
  require_matching(of_a.summed, of_b.summed);
  std::vector<Term<T>> left = terms_of(a, of_a), right = terms_of(b, of_b), scratch;
  radix_sort(right, scratch, of_b.free.bits(), free_of<T>);
  radix_sort(right, scratch, of_b.summed.bits(), summed_of<T>);
  radix_sort(left, scratch, of_a.summed.bits(), summed_of<T>);
  const std::vector<std::size_t> starts = row_starts(right);
  join(right, starts, left);
  radix_sort(left, scratch, of_a.free.bits(), free_of<T>);

  const std::vector<std::size_t> parts = row_parts(left);
  std::vector<Result<T>> results(parts.size() - 1, Result<T>(of_a.free, of_b.free));
  executor.for_each(std::ssize(results), [&](std::int64_t part) {
    RowSums<Sum> sums(of_b.free.bits());
    for (std::size_t k = parts[std::size_t(part)]; k < parts[std::size_t(part) + 1];) {
      const std::uint64_t place = left[k].free;
      for (; k < left.size() && left[k].free == place; ++k)
        for (std::size_t i = starts[left[k].summed]; i < starts[left[k].summed + 1]; ++i)
          sums.add(right[i].free, internal::product_of(left[k].value, right[i].value));
      results[std::size_t(part)].add(of_a.free, place, of_b.free, sums.finish());
      sums.clear();
    }
  });
  Result<T> result(of_a.free, of_b.free);
  for (const Result<T>& part : results) result.append(part);
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
  std::vector<Product<internal::Total<T>>> sum(1);
  for (std::size_t k = 0; k < terms.size();) {
    const std::uint64_t place = terms[k].free;
    sum.front().value = 0;
    for (; k < terms.size() && terms[k].free == place; ++k)
      internal::add_exactly(sum.front().value,
                            internal::product_of(terms[k].value, dense[terms[k].summed]));
    result.add(of_a.free, place, none, sum);
  }
  return result.finish();
}

#define TESSERA_INSTANTIATE_CONTRACT(T)                                                  \
  template CooTensor<T> contract(const CooTensor<T>&, const std::vector<std::int64_t>&,  \
                                 const CooTensor<T>&, const std::vector<std::int64_t>&); \
  template CooTensor<T> contract(const CooTensor<T>&, const std::vector<std::int64_t>&,  \
                                 const CooTensor<T>&, const std::vector<std::int64_t>&,  \
                                 Executor&);                                             \
  template CooTensor<T> contract(const CooTensor<T>&, const std::vector<std::int64_t>&,  \
                                 std::span<const T>);

TESSERA_FOR_EACH_ELEMENT(TESSERA_INSTANTIATE_CONTRACT)

#undef TESSERA_INSTANTIATE_CONTRACT

}  // namespace tessera::arrays
