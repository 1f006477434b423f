#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "tessera/base/half.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/codelets/kernel.hpp"
#include "tessera/tests/support/bucket_builder.hpp"

// Runs a kernel on hand-made buckets and on operands given in double, and measures by how much the
// result exceeds the bound on rounding. The dense reference shares no code with the kernels.
namespace tessera::codelets {

inline void PrintTo(const KernelEntry& kernel, std::ostream* out) { *out << kernel.name; }

}  // namespace tessera::codelets

namespace tessera::test {

using codelets::Format;
using codelets::Kernel;
using codelets::KernelEntry;
using codelets::KernelKey;
using codelets::Operation;

// Numbers that are stored as `type`, and read and written as double.
class Store {
 public:
  Store(DataType type, std::size_t count)
      : type_(type), floats_(count), halves_(count), bfloats_(count) {}

  void set(std::size_t i, double value) {
    floats_[i] = static_cast<float>(value);
    halves_[i] = Half(floats_[i]);
    bfloats_[i] = BFloat16(floats_[i]);
  }
  double get(std::size_t i) const {
    if (type_ == DataType::Float) return double(floats_[i]);
    return type_ == DataType::Half ? double(float(halves_[i])) : double(float(bfloats_[i]));
  }
  std::size_t size() const { return floats_.size(); }
  void* data() {
    if (type_ == DataType::Float) return floats_.data();
    return type_ == DataType::Half ? static_cast<void*>(halves_.data()) : bfloats_.data();
  }

 private:
  DataType type_;
  std::vector<float> floats_;
  std::vector<Half> halves_;
  std::vector<BFloat16> bfloats_;
};

// A dense operand in memory whose rows are `stride` elements apart.
struct StoredRows {
  std::int64_t rows, z, stride;
  Store store;

  StoredRows(DataType type, std::int64_t row_count, std::int64_t columns, std::int64_t gap)
      : rows(row_count),
        z(columns),
        stride(columns + gap),
        store(type, std::size_t(row_count * (columns + gap))) {}
  void set(std::int64_t r, std::int64_t c, double v) { store.set(std::size_t(r * stride + c), v); }
  double get(std::int64_t r, std::int64_t c) const {
    return store.get(std::size_t(r * stride + c));
  }
  codelets::Operand operand() { return {store.data(), rows, z, stride}; }
  codelets::Result result() { return {store.data(), rows, z, stride}; }
};

// The data of one tile for one visit. `fill(generator)` gives every number, including the initial
// values of the result. The gaps between rows hold kGapMark, which must not change.
struct KernelCase {
  static constexpr double kGapMark = 7;

  KernelKey key;
  BlockShape block;
  std::int64_t x, y, z, gap;
  std::int64_t sub_group = 1;
  bool replaces = false, pairs = false;
  std::vector<DrawnRecord> records;
  StoredRows x_side, y_side;  // [x][z] and [y][z]: one is read, the other written; GradW reads both
  Store values, gradients;
  BucketWords words;
  std::vector<std::uint16_t> narrow_words;

  struct Sizes {
    std::int64_t x, y, z, gap;
  };

  KernelCase(const KernelKey& k, BlockShape b, Sizes s, std::vector<DrawnRecord> r)
      : key(k),
        block(b),
        x(s.x),
        y(s.y),
        z(s.z),
        gap(s.gap),
        records(std::move(r)),
        x_side(x_is_result() ? k.sum : k.in, s.x, s.z, s.gap),
        y_side(y_is_result() ? k.sum : k.in, s.y, s.z, s.gap),
        values(k.in, value_count()),
        gradients(k.sum, value_count()) {
    const std::int64_t bytes = bytes_of(k.in);
    if (k.format == Format::Block)
      words = block_words(records, block);
    else if (k.operation == Operation::GradA)
      words = grad_a_words(records, bytes, s.z);
    else
      words = element_words(records, bytes, s.z);
    if (k.word_bits == 16) narrow_words = narrow(words);
  }

  bool x_is_result() const { return key.operation == Operation::Fwd; }
  bool y_is_result() const {
    return key.operation == Operation::GradATransposed || key.operation == Operation::GradA;
  }
  StoredRows& result() { return x_is_result() ? x_side : y_side; }
  std::size_t value_count() const {
    std::int64_t sum = 0;
    for (const DrawnRecord& record : records) sum += record.entries() * block.area();
    return std::size_t(sum);
  }

  template <class Next>
  void fill(Next&& next) {
    for (StoredRows* side : {&x_side, &y_side})
      for (std::int64_t r = 0; r < side->rows; ++r)
        for (std::int64_t c = 0; c < side->stride; ++c) side->set(r, c, c < z ? next() : kGapMark);
    for (Store* store : {&values, &gradients})
      for (std::size_t i = 0; i < store->size(); ++i) store->set(i, next());
  }

  codelets::KernelArgs args() {
    codelets::KernelArgs args;
    args.meta = key.word_bits == 16 ? static_cast<const void*>(narrow_words.data()) : words.data();
    args.values = values.data();
    args.gradients = gradients.data();
    args.sub_group = sub_group;
    args.block = block;
    args.replaces = replaces;
    args.pairs = pairs;
    args.in =
        y_is_result() || key.operation == Operation::GradW ? x_side.operand() : y_side.operand();
    if (key.operation == Operation::GradW)
      args.in_s = y_side.operand();
    else
      args.out = result().result();
    return args;
  }
  void run(Kernel kernel) { kernel(args()); }

  // Calls visit(x, y, value) for every element of R in the tile's own cell.
  template <class Visit>
  void for_each_own(Visit&& visit) const {
    std::size_t value = 0;
    for (const DrawnRecord& record : records)
      for (const DrawnRow& row : record.rows)
        for (const std::int64_t column : row.columns)
          for (std::int64_t i = 0; i < block.area(); ++i, ++value)
            if (record.sub_group == sub_group)
              visit(row.row + i / block.cols, column + i % block.cols, value);
  }
};

// An exact sum with the terms of its rounding bound.
struct ExactSum {
  double sum = 0, magnitude = 0;
  std::int64_t terms = 0;

  void add(double term) {
    sum += term;
    magnitude += std::abs(term);
    ++terms;
  }
  // Any order of summation, every product and every sum rounded: |error| <= (terms + 2) * u *
  // magnitude, u = 2^-24 in float and 2^-11 in half. The second-order term is below one u while
  // terms <= 4000 (float) or 60 (half). A product below the normal halves loses 2^-25 at most.
  double bound(DataType type) const {
    const double unit = type == DataType::Float ? 0x1p-24 : 0x1p-11;
    const double underflow = type == DataType::Float ? 0 : 0x1p-25;
    return double(terms + 2) * unit * magnitude + double(terms) * underflow;
  }
};

// Returns the exact results in the order of results_of().
inline std::vector<ExactSum> exact_results(KernelCase& c) {
  if (c.key.operation == Operation::GradW) {
    std::vector<ExactSum> sums(c.gradients.size());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i].add(c.gradients.get(i));
    c.for_each_own([&](std::int64_t x, std::int64_t y, std::size_t value) {
      for (std::int64_t z = 0; z < c.z; ++z)
        sums[value].add(c.x_side.get(x, z) * c.y_side.get(y, z));
    });
    return sums;
  }
  StoredRows& out = c.result();
  const StoredRows& in = c.x_is_result() ? c.y_side : c.x_side;
  std::vector<ExactSum> sums(std::size_t(out.rows * out.stride));
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i].add(out.store.get(i));
  c.for_each_own([&](std::int64_t x, std::int64_t y, std::size_t value) {
    const std::int64_t to = c.x_is_result() ? x : y, from = c.x_is_result() ? y : x;
    for (std::int64_t z = 0; z < c.z; ++z)
      sums[std::size_t(to * out.stride + z)].add(c.values.get(value) * in.get(from, z));
  });
  return sums;
}

inline const Store& results_of(KernelCase& c) {
  return c.key.operation == Operation::GradW ? c.gradients : c.result().store;
}

// Returns the largest |got - exact| - bound over all results and the gaps, which must be exact. The
// kernel is right if this is <= 0.
inline double worst_excess(KernelCase c, Kernel kernel) {
  const std::vector<ExactSum> exact = exact_results(c);
  c.run(kernel);
  double worst = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const bool untouched = exact[i].terms == 1;
    const double allowed = untouched ? 0 : exact[i].bound(c.key.sum);
    const double excess = std::abs(results_of(c).get(i) - exact[i].sum) - allowed;
    worst = std::isnan(excess) ? std::numeric_limits<double>::infinity() : std::max(worst, excess);
  }
  return exact.empty() ? 0 : worst;
}

inline std::vector<double> results(KernelCase& c) {
  std::vector<double> numbers;
  for (std::size_t i = 0; i < results_of(c).size(); ++i) numbers.push_back(results_of(c).get(i));
  return numbers;
}

}  // namespace tessera::test
