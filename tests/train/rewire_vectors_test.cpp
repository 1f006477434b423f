// The worked rewires of tests/data/rewire_vectors.jsonl: drop, growth, and what carries over.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tessera/train/rewire/carry.hpp"
#include "tessera/train/rewire/drop.hpp"
#include "tessera/train/rewire/method.hpp"
#include "tessera/train/rewire/schedule.hpp"

namespace tessera::train {
namespace {

using nlohmann::json;
using sparse::BlockAt;
using sparse::Csr;

std::vector<json> rewire_vectors() {
  std::ifstream file(TESSERA_SOURCE_DIR "/tests/data/rewire_vectors.jsonl");
  std::vector<json> vectors;
  for (std::string line; std::getline(file, line);) vectors.push_back(json::parse(line));
  return vectors;
}

std::vector<float> numbers_of(const json& blocks) {
  std::vector<float> numbers;
  for (const json& block : blocks)
    for (const json& number : block) numbers.push_back(number.get<float>());
  return numbers;
}

std::vector<BlockAt> places_of(const json& pairs) {
  std::vector<BlockAt> places;
  for (const json& pair : pairs) places.push_back({pair[0], pair[1]});
  std::sort(places.begin(), places.end());
  return places;
}

Csr<float> matrix_of(const json& v, const char* places, const char* values) {
  const std::int64_t side = v["block"];
  Csr<float> m{v["rows"], v["cols"], {side, side}, {0}, {}, numbers_of(v[values])};
  const std::vector<BlockAt> at = places_of(v[places]);
  for (std::int32_t row = 0; row < m.block_rows(); ++row) {
    for (const BlockAt& place : at)
      if (place.row == row) m.col.push_back(place.col);
    m.row_begin.push_back(m.blocks());
  }
  return m;
}

Matrix<float> operand_of(const json& rows) {
  Matrix<float> m(std::ssize(rows), std::ssize(rows[0]));
  for (std::int64_t r = 0; r < m.rows(); ++r)
    for (std::int64_t c = 0; c < m.cols(); ++c)
      m(r, c) = rows[std::size_t(r)][std::size_t(c)].get<float>();
  return m;
}

class RewireVectors : public testing::TestWithParam<json> {};

TEST_P(RewireVectors, ComesOutAsWorkedByHand) {
  const json& v = GetParam();
  const Csr<float> weights = matrix_of(v, "places", "values");
  const Matrix<float> q_grad = operand_of(v["dq"]), s = operand_of(v["s"]);
  const RigL rigl{v["pool"] == "max" ? BlockScore::Max : BlockScore::Sum,
                  v["exclude"] == "original" ? Exclude::Original : Exclude::Kept};
  const GradientBatch batch{q_grad.view(), s.view()};
  for (const int threads : {1, 3}) {
    const auto executor = make_executor(ExecutorKind::Threads, threads);
    const RewireRequest request{weights, v["fraction"], {&batch, 1}, 1, *executor};
    const sparse::PatternChange change = rewire(rigl, request).change;
    EXPECT_EQ(change.removed, places_of(v["removed"]));
    EXPECT_EQ(change.added, places_of(v["added"]));
    const Csr<float> after = sparse::with_change(weights, change);
    EXPECT_EQ(after, matrix_of(v, "new_places", "new_values"));
    const ValueState<float> state{7, {numbers_of(v["momentum"]), weights.values}},
        carried = carried_state(weights, sparse::place_change(weights, change), state);
    EXPECT_EQ(carried, (ValueState<float>{7, {numbers_of(v["new_momentum"]), after.values}}));
  }
  // The number of blocks that move, given the places that are free.
  std::int64_t k = blocks_to_drop(v["fraction"], weights.blocks());
  if (rigl.exclude == Exclude::Original) k = std::min(k, free_places(weights));
  EXPECT_EQ(k, v["k"].get<std::int64_t>());
  EXPECT_EQ(std::ssize(smallest_blocks(weights, k)), k);
}

std::string name_of_vector(const testing::TestParamInfo<json>& info) {
  std::string name = info.param["id"];
  for (char& c : name)
    if (c == ' ' || c == '-') c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(RW, RewireVectors, testing::ValuesIn(rewire_vectors()), name_of_vector);

TEST(RewireVectorFile, HasAllFifteen) { EXPECT_EQ(rewire_vectors().size(), 15U); }

}  // namespace
}  // namespace tessera::train
