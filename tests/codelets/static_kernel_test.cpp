// The words of tiles with a static pattern, and the kernels that walk them, beside a slow twin that
// reads the words one after the other as static_words.hpp describes them.
#include "tessera/codelets/static_kernel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tessera/base/data_type.hpp"
#include "tessera/base/random.hpp"

namespace tessera::codelets {
namespace {

using Words = std::vector<std::uint16_t>;

struct Pattern {
  std::vector<std::int64_t> row_begin = {0};
  std::vector<std::int32_t> column;
  std::int64_t columns = 0;

  std::int64_t rows() const { return std::ssize(row_begin) - 1; }
};

Pattern drawn(const std::vector<std::string>& rows) {
  Pattern p;
  p.columns = std::ssize(rows.front());
  for (const std::string& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c)
      if (row[c] == 'x') p.column.push_back(std::int32_t(c));
    p.row_begin.push_back(std::ssize(p.column));
  }
  return p;
}

Words words_of(const StaticForm& form, const Pattern& p) {
  Words words(std::size_t(static_word_count(form, p.rows(), std::ssize(p.column))));
  write_static_words(form, {p.row_begin, p.column}, reinterpret_cast<std::byte*>(words.data()));
  return words;
}

// A block as the words name it: its row and column of elements, its place among the values, and
// the batch columns for which one worker multiplies it.
struct Visit {
  std::int64_t row = 0, column = 0, place = 0, z_begin = 0, z_end = 0;
};

std::vector<Visit> element_visits(const StaticForm& form, const Words& words) {
  std::vector<Visit> visits;
  const std::int64_t bytes = bytes_of(form.type);
  for (std::int64_t worker = 0; worker < form.workers; ++worker) {
    const std::uint16_t* header = words.data() + 6 * worker;
    const std::uint16_t* at = words.data() + 6 * form.workers + header[1];
    std::int64_t place = header[2];
    for (std::int64_t row = header[5]; row < header[5] + header[0]; ++row) {
      std::int64_t count = *at++;
      if (form.type != DataType::Float) ++count;
      for (; count > 0; --count)
        visits.push_back({row, *at++ / (form.z * bytes), place++, header[4],
                          std::int64_t{header[4]} + header[3]});
    }
  }
  return visits;
}

std::vector<Visit> block_visits(const StaticForm& form, const Words& words) {
  std::vector<Visit> visits;
  const std::int64_t side = form.block.rows, scale = form.z / form.z_grain;
  for (std::int64_t worker = 0; worker < form.workers; ++worker) {
    const std::int64_t z = words[std::size_t(2 * worker)];
    const std::int64_t count = words[std::size_t(2 * worker + 1)];
    const std::uint16_t* at = words.data() + 2 * form.workers;
    const std::int64_t rows = *at++ + 1;
    std::int64_t place = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t row = *at++ / scale * side;
      for (std::int64_t left = *at++ + 1; left > 0; --left)
        visits.push_back({row, *at++ / scale * side, place++, z, z + count});
    }
  }
  return visits;
}

std::vector<Visit> visits_of(const StaticForm& form, const Words& words) {
  return form.block.is_element() ? element_visits(form, words) : block_visits(form, words);
}

template <class T>
std::vector<T> whole_numbers(Random& random, std::int64_t count) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(T(float(random.below(5)) - 2));
  return values;
}

// An operand whose block i is stored at place 2 * (count - i), with rows that are apart.
template <class T>
struct Scattered {
  Scattered(const Operand& packed, std::int64_t side) : stride(packed.z + 3) {
    const std::int64_t count = packed.rows / side;
    elements.assign(std::size_t((2 * count + 1) * side * stride), T(7.0f));
    for (std::int64_t i = 0; i < count; ++i) {
      places.push_back(std::int32_t(2 * (count - i)));
      for (std::int64_t row = 0; row < side; ++row)
        std::copy_n(static_cast<const T*>(packed.data) + (i * side + row) * packed.row_stride,
                    packed.z, elements.data() + (places.back() * side + row) * stride);
    }
    all = {elements.data(), (2 * count + 1) * side, packed.z, stride};
  }
  std::vector<T> elements;
  std::vector<std::int32_t> places;
  std::int64_t stride;
  Operand all;
};

// The results do not depend on where the rows of the operands are stored.
template <class T>
void expect_places_do_not_matter(const StaticForm& form, const Words& words,
                                 const std::vector<T>& values, const Operand& s,
                                 const Operand& q_grad, const std::vector<T>& q,
                                 const std::vector<T>& gradients) {
  const Scattered<T> far_s(s, form.block.rows), far_q(q_grad, form.block.rows);
  std::vector<T> q_again(q.size(), T(8.0f)), again(gradients.size(), T(8.0f));
  run_static(form, Operation::Fwd,
             {.meta = words.data(),
              .values = values.data(),
              .block = form.block,
              .in = far_s.all,
              .out = {q_again.data(), q_grad.rows, form.z, form.z}},
             {.in = far_s.places, .in_s = {}});
  run_static(form, Operation::GradW,
             {.meta = words.data(),
              .gradients = again.data(),
              .block = form.block,
              .in = far_q.all,
              .in_s = far_s.all},
             {.in = far_q.places, .in_s = far_s.places});
  for (std::size_t i = 0; i < q.size(); ++i) ASSERT_EQ(float(q_again[i]), float(q[i])) << i;
  for (std::size_t i = 0; i < again.size(); ++i)
    ASSERT_EQ(float(again[i]), float(gradients[i])) << i;
}

// Whole numbers, so that every sum is exact in every type.
template <class T>
void expect_twin_agrees(const StaticForm& form, const Pattern& p, Random& random) {
  const Words words = words_of(form, p);
  const std::int64_t side = form.block.rows, area = form.block.area(), z = form.z;
  const auto values = whole_numbers<T>(random, std::ssize(p.column) * area);
  const auto s = whole_numbers<T>(random, p.columns * side * z);
  const auto q_grad = whole_numbers<T>(random, p.rows() * side * z);
  std::vector<T> q(q_grad.size(), T(9.0f)), gradients(values.size(), T(9.0f));
  std::vector<double> slow_q(q.size(), 0), slow_gradients(gradients.size(), 0);
  for (const Visit& v : visits_of(form, words))
    for (std::int64_t i = 0; i < side; ++i)
      for (std::int64_t j = 0; j < side; ++j)
        for (std::int64_t k = v.z_begin; k < v.z_end; ++k) {
          const auto value = std::size_t(v.place * area + i * side + j);
          const auto out = std::size_t((v.row + i) * z + k),
                     in = std::size_t((v.column + j) * z + k);
          slow_q[out] += double(float(values[value])) * double(float(s[in]));
          slow_gradients[value] += double(float(q_grad[out])) * double(float(s[in]));
        }
  const Operand in_s{s.data(), p.columns * side, z, z}, in_q{q_grad.data(), p.rows() * side, z, z};
  run_static(form, Operation::Fwd,
             {.meta = words.data(),
              .values = values.data(),
              .block = form.block,
              .in = in_s,
              .out = {q.data(), p.rows() * side, z, z}});
  run_static(form, Operation::GradW,
             {.meta = words.data(),
              .gradients = gradients.data(),
              .block = form.block,
              .in = in_q,
              .in_s = in_s});
  for (std::size_t i = 0; i < q.size(); ++i) ASSERT_EQ(double(float(q[i])), slow_q[i]) << i;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    ASSERT_EQ(double(float(gradients[i])), slow_gradients[i]) << i;
  expect_places_do_not_matter<T>(form, words, values, in_s, in_q, q, gradients);
}

TEST(StaticWords, AreThoseOfTheHeader) {
  const Pattern p = drawn({"x.x", "..x"});
  const StaticForm form{.type = DataType::Half, .z = 4, .z_grain = 4, .workers = 2};
  // A row for each worker: rows, first word, first value, columns of the batch, the first of them,
  // first row. Then columns - 1 and each column times 4 halves.
  EXPECT_EQ(words_of(form, p), (Words{1, 0, 0, 4, 0, 0, 1, 3, 2, 4, 0, 1, 1, 0, 16, 0, 16}));
  const StaticForm blocks{
      .block = {4, 4}, .type = DataType::Half, .z = 8, .z_grain = 4, .workers = 2};
  // Two workers with half of the columns each; rows - 1; of each row its number times 8 / 4,
  // blocks - 1, and the columns times 8 / 4.
  EXPECT_EQ(words_of(blocks, p), (Words{0, 4, 4, 4, 1, 0, 1, 0, 4, 2, 0, 4}));
}

TEST(StaticKernel, DoesWhatItsSlowTwinDoes) {
  Random random(3);
  const std::vector<Pattern> drawings = {drawn({"x"}), drawn({"xxxxx"}),
                                         drawn({"x", "x", "x", "x"}), drawn({"x.x", ".x.", "xx."}),
                                         drawn({"x...x", "xx...", "..x..", "...xx", "xxxxx"})};
  for (const std::int64_t side : {1, 4, 8, 16})
    for (const DataType type : {DataType::Float, DataType::Half, DataType::BFloat16})
      for (const std::int64_t z : {4, 8, 12, 20})
        for (const Pattern& p : drawings) {
          SCOPED_TRACE(testing::Message() << side << " " << to_string(type) << " z " << z);
          const StaticForm form{.block = {side, side},
                                .type = type,
                                .z = z,
                                .z_grain = type == DataType::Float ? 2 : 4};
          with_type(type, [&]<class T>(T) { expect_twin_agrees<T>(form, p, random); });
        }
}

}  // namespace
}  // namespace tessera::codelets
