// A layer of several ranks against a layer of one process, bit by bit.

#include "tessera/distributed/layer.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/distributed/thread_ranks.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/part.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/train/optim/values.hpp"

namespace tessera::distributed {
namespace {

// Caches so small that little layers have many cells and panels.
const host::HostCpu kTiny{.cores = 2, .l1_data = Bytes(2048), .l2 = Bytes(16384), .l3 = Bytes()};

// Caches that hold next to nothing, so that small layers are packed by one process.
const host::HostCpu kSmall{.cores = 1, .l1_data = Bytes(2048), .l2 = Bytes(1024), .l3 = Bytes()};

struct LayerCase {
  std::int64_t x, y, z;
  BlockShape block;
  double density;
  std::int64_t planned = 0;  // columns, if they are others than z

  Problem problem(DataType type) const {
    return {.size = {1, x, y, planned > 0 ? planned : z},
            .block = block,
            .density = density,
            .data_type = type,
            .grad_a = true,
            .grad_w = true};
  }
  sparse::Csr<float> weights() const {
    const Dims size = problem(DataType::Float).size_in_blocks();
    sparse::Csr<float> matrix = sparse::random_pattern(size.x, size.y, block, density, 3);
    Random random(4);
    for (float& v : matrix.values) v = float(2 * random.unit() - 1);
    return matrix;
  }
  std::string name() const {
    return std::to_string(x) + " x " + std::to_string(y) + " x " + std::to_string(z) + ", block " +
           std::to_string(block.rows) + " x " + std::to_string(block.cols) + ", planned for " +
           std::to_string(planned);
  }
};

std::vector<LayerCase> cases() {
  return {
      {96, 80, 40, {1, 1}, 0.2},   {61, 47, 193, {1, 1}, 0.1},      {64, 96, 130, {4, 4}, 0.3},
      {50, 70, 65, {16, 16}, 0.5}, {37, 40, 193, {3, 2}, 0.4},      {40, 33, 1, {1, 1}, 0.3},
      {3, 2, 5, {1, 1}, 0.9},      {48, 48, 300, {1, 1}, 0.02, 64}, {64, 64, 97, {8, 8}, 0.1, 1000},
      {40, 40, 24, {2, 4}, 0.0},   {64, 300, 17, {1, 1}, 0.5},      {150, 90, 50, {1, 1}, 0.6}};
}

template <class T>
struct Results {
  Matrix<T> q, s_grad;
  std::vector<float> gradients;

  friend bool operator==(const Results&, const Results&) = default;
};

template <class T>
struct Operands {
  explicit Operands(const LayerCase& c)
      : s(random_matrix<T>(c.y, c.z, 5)), q_grad(random_matrix<T>(c.x, c.z, 6)) {}

  Matrix<T> s, q_grad;
};

template <class T>
MatrixView<T> rows_of_view(MatrixView<T> view, Range rows) {
  return view.sub(rows, {0, view.cols});
}

// Runs the passes of one process.
template <class T>
Results<T> run_alone(host::HostLayer& layer, const Operands<T>& in) {
  Results<T> out{Matrix<T>(in.q_grad.rows(), in.s.cols()), Matrix<T>(in.s.rows(), in.s.cols()),
                 std::vector<float>(std::size_t(layer.values()))};
  layer.forward<T>(in.s.view(), out.q.view());
  layer.grad_a<T>(in.q_grad.view(), out.s_grad.view());
  layer.grad_w<T>(in.q_grad.view(), in.s.view(), out.gradients);
  return out;
}

// Runs the passes of one rank; the ranks write their parts of `out`, and `first_value` is the first
// of this rank's values.
template <class T>
void run_rank(RankLayer& layer, const Operands<T>& in, std::int64_t first_value, Results<T>& out) {
  const Range rows = layer.outputs(), cols = layer.inputs();
  const auto s = rows_of_view(in.s.view(), cols);
  const auto q_grad = rows_of_view(in.q_grad.view(), rows);
  layer.forward<T>(s, rows_of_view(out.q.view(), rows));
  layer.grad_a<T>(q_grad, rows_of_view(out.s_grad.view(), cols));
  layer.grad_w<T>(
      q_grad, s,
      std::span(out.gradients).subspan(std::size_t(first_value), std::size_t(layer.values())));
}

std::int64_t first_value(const sparse::Csr<float>& all, Range rows) {
  return all.row_begin[std::size_t(rows.begin / all.block.rows)] * all.block.area();
}

template <class T>
void expect_bits_of_one(const LayerCase& c, int count) {
  SCOPED_TRACE(c.name() + ", ranks " + std::to_string(count));
  const sparse::Csr<float> weights = c.weights();
  const auto executor = make_executor(1);
  host::HostLayer alone(c.problem(data_type_of<T>()), kTiny, *executor);
  alone.set_weights(weights);
  const Operands<T> in(c);
  const Results<T> expected = run_alone(alone, in);
  Results<T> got{Matrix<T>(c.x, c.z), Matrix<T>(c.y, c.z),
                 std::vector<float>(expected.gradients.size(), 9.0f)};
  run_ranks(count, [&](Communicator& ranks) {
    const auto threads = make_executor(ExecutorKind::Threads, 1 + ranks.rank() % 2);
    host::HostCpu own = kTiny;  // ranks may have vectors of other widths
    if (ranks.rank() % 2 == 1) own.vector = Bytes(32);
    RankLayer layer(c.problem(data_type_of<T>()), own, *threads, ranks);
    layer.set_weights(sparse::checked(weights));
    const Range rows = layer.outputs();
    run_rank(layer, in, rows.size() > 0 ? first_value(weights, rows) : 0, got);
  });
  EXPECT_EQ(got.q, expected.q);
  EXPECT_EQ(got.s_grad, expected.s_grad);
  EXPECT_EQ(got.gradients, expected.gradients);
}

TEST(RunsOfRows, HasTheBitsOfOneRankForAnyNumberOfRanks) {
  for (const LayerCase& c : cases())
    for (const int count : {1, 2, 3, 4, 5, 8}) expect_bits_of_one<float>(c, count);
}

TEST(RunsOfRows, HasTheBitsOfOneRankInTypesOf16Bits) {
  for (const LayerCase& c : cases()) {
    expect_bits_of_one<Half>(c, 3);
    expect_bits_of_one<BFloat16>(c, 2);
  }
}

// One process packs the rows of Fwd of such a layer, but not of GradA. Whether it pays depends on
// the size of the weights, which is another one for a part.
TEST(RunsOfRows, HasTheBitsAndTheBoundOfOneRankWhereRowsMayBePacked) {
  const LayerCase c{300, 280, 4, {1, 1}, 0.3};
  Problem problem = c.problem(DataType::Half);
  problem.grad_w = false;
  const auto s = random_matrix<Half>(c.y, c.z, 5), q_grad = random_matrix<Half>(c.x, c.z, 6);
  const auto executor = make_executor(1);
  host::HostLayer packed(problem, kSmall, *executor);
  packed.set_weights(c.weights());
  ASSERT_TRUE(packed.is_packed(Pass::Fwd));
  host::HostLayer alone(problem, kSmall, *executor, {.reads_rows = false});
  alone.set_weights(c.weights());
  Matrix<Half> q(c.x, c.z), s_grad(c.y, c.z);
  alone.forward<Half>(s.view(), q.view());
  alone.grad_a<Half>(q_grad.view(), s_grad.view());
  for (const int count : {1, 2, 3, 40}) {
    SCOPED_TRACE(count);
    Matrix<Half> own_q(c.x, c.z), own_s_grad(c.y, c.z);
    run_ranks(count, [&](Communicator& ranks) {
      const auto threads = make_executor(1);
      RankLayer layer(problem, kSmall, *threads, ranks);
      layer.set_weights(c.weights());
      const Range rows = layer.outputs(), cols = layer.inputs();
      layer.forward<Half>(rows_of_view(s.view(), cols), rows_of_view(own_q.view(), rows));
      layer.grad_a<Half>(rows_of_view(q_grad.view(), rows), rows_of_view(own_s_grad.view(), cols));
      for (const Pass pass : {Pass::Fwd, Pass::GradA})
        EXPECT_EQ(layer.rounding(pass).partials, alone.rounding(pass).partials);
    });
    EXPECT_EQ(own_q, q);
    EXPECT_EQ(own_s_grad, s_grad);
  }
}

// Calls body(layer) on ranks of a layer that has the case's weights.
void on_ranks(const LayerCase& c, int count, const std::function<void(RankLayer&)>& body) {
  const sparse::Csr<float> weights = c.weights();
  run_ranks(count, [&](Communicator& ranks) {
    const auto executor = make_executor(1);
    RankLayer layer(c.problem(DataType::Float), kTiny, *executor, ranks);
    layer.set_weights(sparse::checked(weights));
    body(layer);
  });
}

TEST(RunsOfRows, AppliesBiasActivationMaskAndSumsWithTheBitsOfOneRank) {
  for (const LayerCase& c : {LayerCase{61, 47, 300, {1, 1}, 0.1}, {64, 48, 70, {4, 4}, 0.3}}) {
    SCOPED_TRACE(c.name());
    const Operands<float> in(c);
    const Matrix<float> mask = random_matrix<float>(c.y, c.z, 8);
    const Matrix<float> bias = random_matrix<float>(c.x, 1, 9);
    const auto executor = make_executor(1);
    host::HostLayer alone(c.problem(DataType::Float), kTiny, *executor);
    const sparse::Csr<float> weights = c.weights();
    alone.set_weights(weights);
    Results<float> expected{Matrix<float>(c.x, c.z), Matrix<float>(c.y, c.z),
                            std::vector<float>(std::size_t(alone.values()), 0.25f)};
    Results<float> got = expected;
    alone.forward<float>(in.s.view(), expected.q.view(),
                         {.bias = bias.elements(), .activation = host::Activation::Relu});
    alone.grad_a<float>(in.q_grad.view(), expected.s_grad.view(), {.where_positive = mask.view()});
    alone.grad_w<float>(in.q_grad.view(), in.s.view(), expected.gradients,
                        {.accumulate = layer::Accumulate::Yes});
    on_ranks(c, 3, [&](RankLayer& layer) {
      const Range rows = layer.outputs(), cols = layer.inputs();
      layer.forward<float>(rows_of_view(in.s.view(), cols), rows_of_view(got.q.view(), rows),
                           {.bias = std::span(bias.elements())
                                        .subspan(std::size_t(rows.begin), std::size_t(rows.size())),
                            .activation = host::Activation::Relu});
      layer.grad_a<float>(rows_of_view(in.q_grad.view(), rows),
                          rows_of_view(got.s_grad.view(), cols),
                          {.where_positive = rows_of_view(mask.view(), cols)});
      layer.grad_w<float>(
          rows_of_view(in.q_grad.view(), rows), rows_of_view(in.s.view(), cols),
          std::span(got.gradients)
              .subspan(std::size_t(first_value(weights, rows)), std::size_t(layer.values())),
          {.accumulate = layer::Accumulate::Yes});
    });
    EXPECT_EQ(got, expected);
  }
}

// Returns the change of the pattern of `weights` that moves every seventh block to a free place.
sparse::PatternChange moves_of(const sparse::Csr<float>& weights) {
  sparse::PatternChange change;
  for (std::int64_t row = 0; row < weights.block_rows(); ++row) {
    const std::span<const std::int32_t> cols(
        weights.col.data() + weights.row_begin[std::size_t(row)],
        weights.col.data() + weights.row_begin[std::size_t(row) + 1]);
    for (std::size_t i = 0; i + 1 < cols.size(); i += 7) {
      if (cols[i] + 1 == cols[i + 1]) continue;
      change.removed.push_back({std::int32_t(row), cols[i]});
      change.added.push_back({std::int32_t(row), cols[i] + 1});
    }
  }
  return change;
}

// Three steps of Adam, with a change of the pattern after the second one.
TEST(RunsOfRows, TrainsAndMovesWeightsWithTheBitsOfOneRank) {
  const train::Optimiser optimiser{train::Adam{}};
  for (const LayerCase& c : {LayerCase{61, 47, 40, {1, 1}, 0.2}, {48, 80, 70, {4, 2}, 0.3}}) {
    SCOPED_TRACE(c.name());
    const Operands<float> in(c);
    const auto executor = make_executor(1);
    host::HostLayer alone(c.problem(DataType::Float), kTiny, *executor);
    alone.set_weights(c.weights());
    const auto step = [&](auto& layer, const auto& gradients) {
      auto state = train::make_value_state<float>(optimiser, layer.values());
      layer.change_values(train::ValueStep<float>(optimiser, gradients, state));
    };
    Results<float> expected, got{Matrix<float>(c.x, c.z), Matrix<float>(c.y, c.z), {}};
    for (int i = 0; i < 3; ++i) {
      expected = run_alone(alone, in);
      step(alone, expected.gradients);
      if (i == 1) alone.update_weights(moves_of(alone.weights()));
    }
    expected = run_alone(alone, in);
    got.gradients.resize(expected.gradients.size());
    const sparse::Csr<float>& weights = alone.weights();
    on_ranks(c, 4, [&](RankLayer& layer) {
      for (int i = 0; i < 3; ++i) {
        const Range rows = layer.outputs(), cols = layer.inputs();
        std::vector<float> gradients(std::size_t(layer.values()));
        layer.grad_w<float>(rows_of_view(in.q_grad.view(), rows), rows_of_view(in.s.view(), cols),
                            gradients);
        step(layer, gradients);
        if (i == 1) layer.update_weights(moves_of(layer.weights()));
      }
      const Range rows = layer.outputs();
      EXPECT_EQ(layer.weights(), rows_of(weights, rows));
      run_rank(layer, in, first_value(weights, rows), got);
    });
    EXPECT_EQ(got, expected);
  }
}

TEST(RunsOfRows, NewValuesReachTheTranspose) {
  const LayerCase c{40, 36, 20, {4, 2}, 0.3};
  const Operands<float> in(c);
  sparse::Csr<float> weights = c.weights();
  for (float& v : weights.values) v = 3 - v;
  const auto executor = make_executor(1);
  host::HostLayer alone(c.problem(DataType::Float), kTiny, *executor);
  alone.set_weights(weights);
  const Results<float> expected = run_alone(alone, in);
  Results<float> got{Matrix<float>(c.x, c.z), Matrix<float>(c.y, c.z),
                     std::vector<float>(expected.gradients.size())};
  on_ranks(c, 3, [&](RankLayer& layer) {
    const Range rows = layer.outputs();
    layer.set_values(rows_of(weights, rows).values);
    run_rank(layer, in, first_value(weights, rows), got);
  });
  EXPECT_EQ(got, expected);
}

TEST(RunsOfRows, ReceivesTheRowsOfTheOthersAndNothingElse) {
  const LayerCase c{96, 80, 130, {1, 1}, 0.2};
  on_ranks(c, 4, [&](RankLayer& layer) {
    const Range rows = layer.outputs(), cols = layer.inputs();
    const Matrix<float> s(cols.size(), c.z), q_grad(rows.size(), c.z);
    Matrix<float> q(rows.size(), c.z), s_grad(cols.size(), c.z);
    std::vector<float> gradients(std::size_t(layer.values()));
    const std::int64_t of_s = (c.y - cols.size()) * c.z * 4;
    EXPECT_EQ(layer.forward<float>(s.view(), q.view()).received_bytes, of_s);
    EXPECT_EQ(layer.grad_w<float>(q_grad.view(), s.view(), gradients).received_bytes, of_s);
    EXPECT_EQ(layer.grad_a<float>(q_grad.view(), s_grad.view()).received_bytes,
              (c.x - rows.size()) * c.z * 4);
  });
}

// Two places of eight bytes and the lengths of lists, where all places of the others would be some
// 2,300 bytes.
TEST(RunsOfRows, SendsNothingButTheChangeOfAPattern) {
  const LayerCase c{96, 80, 8, {1, 1}, 0.2};
  run_ranks(4, [&](Communicator& ranks) {
    const auto executor = make_executor(1);
    RankLayer layer(c.problem(DataType::Float), kTiny, *executor, ranks);
    layer.set_weights(sparse::checked(c.weights()));
    sparse::PatternChange change = moves_of(layer.weights());
    change.removed.resize(1);
    change.added.resize(1);
    const std::int64_t before = ranks.traffic().received_bytes;
    const auto prepared = layer.prepare_update(change);
    EXPECT_LT(ranks.traffic().received_bytes - before, 500);
  });
}

TEST(RunsOfRows, TakesTheRowsThatItIsGiven) {
  const LayerCase c{24, 20, 8, {1, 1}, 0.4};
  const RowCut outputs{{0, 3, 24}};
  run_ranks(2, [&](Communicator& ranks) {
    const auto executor = make_executor(1);
    RankLayer layer(c.problem(DataType::Float), kTiny, *executor, ranks);
    const Range rows = outputs.of(ranks.rank());
    layer.set_rows(outputs, rows_of(c.weights(), rows));
    EXPECT_EQ(layer.outputs(), rows);
    EXPECT_EQ(layer.parts()[0].rows, rows);
    EXPECT_EQ(layer.weights().rows, rows.size());
  });
}

TEST(RunsOfRows, RefusesWhatIsNotTheRanks) {
  const LayerCase c{24, 20, 8, {1, 1}, 0.4};
  const auto on_two = [&](const std::function<void(RankLayer&, Range, Range)>& call) {
    return test::refusal([&] {
      on_ranks(c, 2, [&](RankLayer& layer) { call(layer, layer.outputs(), layer.inputs()); });
    });
  };
  Matrix<float> whole(c.y, c.z), part(1, c.z);
  EXPECT_NE(on_two([&](RankLayer& layer, Range rows, Range) {
              Matrix<float> q(rows.size(), c.z);
              layer.forward<float>(std::as_const(whole).view(), q.view());
            }).find("s is 20 x 8; this layer needs"),
            std::string::npos);
  on_two([&](RankLayer& layer, Range rows, Range cols) {
    const Matrix<Half> s(cols.size(), c.z);
    Matrix<Half> q(rows.size(), c.z);
    layer.forward<Half>(s.view(), q.view());
  });
  on_two([&](RankLayer& layer, Range, Range cols) {
    Matrix<float> both(c.x, c.z);
    layer.forward<float>(rows_of_view(std::as_const(both).view(), {0, cols.size()}),
                         rows_of_view(both.view(), {0, layer.weights().rows}));
  });
  on_two([&](RankLayer& layer, Range rows, Range cols) {
    const Matrix<float> s(cols.size(), c.z), q_grad(rows.size(), c.z);
    layer.grad_w<float>(q_grad.view(), s.view(), {});
  });
  on_two([&](RankLayer& layer, Range, Range) {
    layer.set_weights(sparse::checked(sparse::random_pattern(20, 24, {1, 1}, 0.5, 1)));
  });
}

TEST(RunsOfRows, RefusesEveryCallBeforeItHasWeights) {
  const auto executor = make_executor(1);
  Problem problem = LayerCase{24, 20, 8, {1, 1}, 0.4}.problem(DataType::Float);
  const Matrix<float> s(20, 8), q_grad(24, 8);
  Matrix<float> q(24, 8), s_grad(20, 8);
  const std::vector<float> values(1);
  std::vector<float> gradients(1);
  run_ranks(1, [&](Communicator& ranks) {
    RankLayer layer(problem, kTiny, *executor, ranks);
    const std::vector<std::function<void()>> calls{
        [&] { layer.forward<float>(s.view(), q.view()); },
        [&] { layer.grad_a<float>(q_grad.view(), s_grad.view()); },
        [&] { layer.grad_w<float>(q_grad.view(), s.view(), gradients); },
        [&] { layer.set_values(values); },
        [&] { layer.prepare_update({}); },
        [&] { layer.weights(); },
        [&] { layer.rounding(Pass::Fwd); },
        [&] { layer.parts(); },
        [&] { layer.outputs(); },
        [&] { layer.columns(); }};
    for (const auto& call : calls) {
      const std::string message = test::refusal(call);
      EXPECT_NE(message.find("set_weights"), std::string::npos) << message;
    }
  });
  problem.grad_a = false;
  run_ranks(1, [&](Communicator& ranks) {
    RankLayer layer(problem, kTiny, *executor, ranks);
    layer.set_weights(sparse::checked(sparse::random_pattern(24, 20, {1, 1}, 0.5, 1)));
    EXPECT_NE(test::refusal([&] { layer.columns(); }).find("no GradA"), std::string::npos);
    EXPECT_NE(test::refusal([&] { layer.rounding(Pass::GradA); }).find("GradA"), std::string::npos);
    EXPECT_GT(layer.rounding(Pass::GradW).partials, 0);
  });
}

}  // namespace
}  // namespace tessera::distributed
