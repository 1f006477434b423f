#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tessera/planner/planner.hpp"

// Plans of PopSparse (PopLibs 3.4) with every term of their cost, in parity mode.
namespace tessera::planner {
namespace {

constexpr DataType kHalf = DataType::Half, kFloat = DataType::Float;

struct Layer {
  Dims size;
  std::int64_t block = 1;
  double density = 0.1;
  DataType data_type = kHalf, partials_type = kFloat;
  bool grad_a = false, grad_w = false;
};

struct Setting {
  std::int64_t tiles = 1472;
  bool small_tiles = false;  // 256 KiB
  double proportion = 0.6, oversize = 0.3;
  bool shared = true;
  PlanConstraints pins = {};
};

struct Expected {
  std::int64_t cycles, temp;
  Dims partition;
  std::int64_t z_grain;
  std::int64_t values, fwd_words, grad_a_words;  // shared: grad_a_words equal fwd_words upstream
  bool exchange_buckets = false;
  Method grad_w = Method::BlockGradW;  // compared only when GradW is planned
};

PlanResult parity_plan(const Layer& layer, const Setting& setting) {
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = setting.tiles;
  if (setting.small_tiles) machine.tile_memory = Bytes(256 * 1024);
  Options options;
  options.available_memory_proportion = setting.proportion;
  options.meta_info_bucket_oversize_proportion = setting.oversize;
  options.shared_buckets = setting.shared;
  options.constraints = setting.pins;
  options.poplibs_parity = true;
  return plan({layer.size,
               {layer.block, layer.block},
               layer.density,
               layer.data_type,
               layer.partials_type,
               layer.grad_a,
               layer.grad_w},
              machine, options);
}

Plan expect_plan(const char* id, const Layer& layer, const Setting& setting, const Expected& e) {
  SCOPED_TRACE(id);
  const PlanResult result = parity_plan(layer, setting);
  EXPECT_EQ(result.status, PlanStatus::Found);
  const Plan& p = result.plan;
  EXPECT_EQ(p.cost.cycles, Cycles(e.cycles));
  EXPECT_EQ(p.cost.temp, Bytes(e.temp));
  EXPECT_EQ(p.partition, e.partition);
  EXPECT_EQ(p.grain.z, e.z_grain);
  EXPECT_EQ(p.nonzeros_per_bucket, e.values);
  EXPECT_EQ(p.fwd_meta_words, Words(e.fwd_words));
  const bool own_grad_a = layer.grad_a && !p.shared_buckets();
  EXPECT_EQ(p.grad_a_meta_words, Words(own_grad_a ? e.grad_a_words : 0));
  if (layer.grad_w) {
    EXPECT_EQ(p.grad_w_exchange_buckets, e.exchange_buckets);
    EXPECT_EQ(p.grad_w, e.grad_w);
  }
  return p;
}

using Terms = std::vector<std::pair<std::int64_t, std::int64_t>>;  // cycles, temporary bytes

Terms terms(const Plan& plan, Pass pass) {
  Terms result;
  const PassCost* cost = plan.cost.find(pass);
  if (cost == nullptr) return result;
  for (const CostTerm& t : cost->terms) result.emplace_back(t.cycles.value, t.temp.value);
  return result;
}

constexpr Method kElement = Method::ElementGradW, kAmp = Method::BlockGradWAmp;

TEST(GoldenPlans, G1ElementForwardOnTheWholeChip) {
  const Plan p =
      expect_plan("G1", {{1, 1024, 1024, 64}}, {}, {5378, 11376, {1, 86, 8, 2}, 4, 100, 312, 0});
  EXPECT_EQ(terms(p, Pass::Fwd),
            (Terms{{1436, 9016}, {3006, 10552}, {0, 11376}, {384, 3072}, {552, 3168}}));
}

TEST(GoldenPlans, G2ElementAllPassesWithSharedBuckets) {
  const Plan p = expect_plan("G2", {{1, 1024, 1024, 64}, 1, 0.1, kHalf, kFloat, true, true}, {},
                             {26100, 13916, {1, 38, 19, 2}, 4, 96, 420, 420, true, kElement});
  EXPECT_EQ(terms(p, Pass::Fwd),
            (Terms{{948, 4488}, {4278, 7944}, {0, 8976}, {864, 6912}, {948, 7004}}));
  EXPECT_EQ(terms(p, Pass::GradA),
            (Terms{{0, 0}, {948, 2760}, {9482, 9672}, {0, 10704}, {1728, 13824}, {1632, 13916}}));
  EXPECT_EQ(terms(p, Pass::GradW),
            (Terms{{864, 5184}, {0, 0}, {612, 0}, {3592, 0}, {0, 7632}, {0, 840}, {204, 1032}}));
}

TEST(GoldenPlans, G3ElementAllPassesWithSeparateBuckets) {
  Setting separate;
  separate.shared = false;
  const Plan p =
      expect_plan("G3", {{1, 1024, 1024, 64}, 1, 0.1, kHalf, kFloat, true, true}, separate,
                  {21666, 10332, {1, 28, 26, 2}, 4, 96, 428, 600, true, kElement});
  EXPECT_EQ(terms(p, Pass::Fwd),
            (Terms{{844, 3608}, {4794, 8344}, {0, 9392}, {1184, 9472}, {1200, 9564}}));
  EXPECT_EQ(terms(p, Pass::GradA),
            (Terms{{0, 0}, {1288, 3760}, {4756, 8880}, {0, 10272}, {1280, 10240}, {1272, 10332}}));
  EXPECT_EQ(terms(p, Pass::GradW),
            (Terms{{912, 4928}, {0, 0}, {620, 0}, {3312, 0}, {0, 7408}, {0, 856}, {204, 1048}}));
}

TEST(GoldenPlans, G4LargeBlocksOnTwentyFourTiles) {
  Setting setting;
  setting.tiles = 24;
  setting.proportion = 1;
  const Plan p =
      expect_plan("G4", {{1, 1024, 1024, 4}, 16, 0.1, kHalf, kFloat, true, true}, setting,
                  {51804, 51008, {1, 6, 4, 1}, 1, 5888, 112, 112, true, Method::BlockGradW});
  EXPECT_EQ(terms(p, Pass::Fwd),
            (Terms{{256, 2048}, {8037, 4864}, {0, 28864}, {704, 5632}, {1056, 5984}}));
  EXPECT_EQ(
      terms(p, Pass::GradA),
      (Terms{{2533, 11776}, {352, 13184}, {10702, 17280}, {0, 41280}, {1024, 8192}, {1350, 8534}}));
  EXPECT_EQ(terms(p, Pass::GradW),
            (Terms{{608, 3456}, {0, 0}, {0, 0}, {22080, 0}, {0, 51008}, {0, 224}, {3102, 12000}}));
}

Setting small_chip() {
  Setting setting;
  setting.tiles = 1216;
  setting.small_tiles = true;
  return setting;
}

TEST(GoldenPlans, G5TallLayerOnSmallTiles) {
  expect_plan("G5", {{1, 32768, 1024, 4}, 1, 0.01, kHalf, kFloat, true, true}, small_chip(),
              {15874, 10336, {1, 134, 9, 1}, 4, 364, 1012, 1012, true, kElement});
}

TEST(GoldenPlans, G6DropsTheMemoryBoundAltogether) {
  expect_plan("G6", {{1, 32768, 32768, 512}, 4, 0.01, kFloat, kFloat}, small_chip(),
              {2076276, 3293784, {1, 50, 6, 4}, 1, 11648, 3428, 0});
}

TEST(GoldenPlans, G7DoublesTheMemoryBound) {
  expect_plan("G7", {{1, 4096, 4096, 4096}, 16, 1.0 / 16, kHalf, kHalf}, {},
              {214522, 715184, {1, 22, 1, 64}, 1, 1024, 296, 0});
}

TEST(GoldenPlans, G8LargeBlocksAllPassesOnTheWholeChip) {
  const Plan p = expect_plan("G8", {{1, 4096, 4096, 1024}, 16, 1.0 / 16, kHalf, kFloat, true, true},
                             {}, {461937, 243508, {1, 10, 9, 16}, 16, 1024, 208, 208, true, kAmp});
  EXPECT_EQ(
      terms(p, Pass::Fwd),
      (Terms{{17280, 96352}, {101788, 202848}, {0, 170816}, {26624, 212992}, {24732, 218910}}));
  EXPECT_EQ(terms(p, Pass::GradA), (Terms{{769, 2048},
                                          {23168, 92256},
                                          {86568, 211040},
                                          {0, 179008},
                                          {29696, 237568},
                                          {26958, 243508}}));
  EXPECT_EQ(terms(p, Pass::GradW), (Terms{{20736, 112640},
                                          {23424, 225280},
                                          {18048, 0},
                                          {61474, 0},
                                          {0, 121664},
                                          {0, 416},
                                          {672, 2464}}));
}

TEST(GoldenPlans, G9MiddleBlocksInFloat) {
  expect_plan("G9", {{1, 1024, 2048, 256}, 8, 0.05, kFloat, kFloat, true, true}, {},
              {80164, 59392, {1, 12, 15, 8}, 8, 192, 100, 100, true, kAmp});
}

TEST(GoldenPlans, G10UnevenLayerWithMoreRoom) {
  Setting setting;
  setting.oversize = 0.5;
  setting.proportion = 1;
  expect_plan("G10", {{1, 300, 784, 16}, 1, 0.1, kHalf, kFloat, true}, setting,
              {4356, 1864, {1, 25, 28, 2}, 4, 26, 168, 168});
}

TEST(GoldenPlans, G11LargeBlocksForward) {
  const Plan p = expect_plan("G11", {{1, 4096, 4096, 256}, 16, 1.0 / 16, kHalf, kHalf}, {},
                             {29694, 92448, {1, 52, 7, 4}, 1, 1024, 48, 0});
  EXPECT_EQ(terms(p, Pass::Fwd),
            (Terms{{11616, 82208}, {12566, 92448}, {0, 90304}, {2560, 20480}, {2952, 21944}}));
}

TEST(GoldenPlans, G12ObeysAPinnedPartition) {
  Setting setting;
  setting.tiles = 24;
  setting.pins = {6, 4, 1, {}, {}};
  const Plan p = expect_plan("G12", {{1, 512, 512, 64}, 1, 0.01}, setting,
                             {24853, 46784, {1, 6, 4, 1}, 4, 144, 408, 0});
  EXPECT_EQ(terms(p, Pass::Fwd),
            (Terms{{2048, 16384}, {10845, 38400}, {0, 40608}, {5504, 44032}, {6456, 46784}}));
}

TEST(GoldenPlans, G13ForwardAndGradWOnTwentyFourTiles) {
  Setting setting;
  setting.tiles = 24;
  setting.shared = false;
  expect_plan("G13", {{1, 512, 512, 4}, 1, 0.1, kHalf, kFloat, false, true}, setting,
              {11658, 20584, {1, 12, 2, 1}, 4, 1422, 1704, 0, true, kElement});
}

TEST(GoldenPlans, G14SendsOperandsInGradWWhereThatIsCheaper) {
  expect_plan("G14", {{1, 32768, 1024, 8}, 1, 0.01, kFloat, kFloat, true, true}, small_chip(),
              {31013, 22016, {1, 152, 8, 1}, 2, 360, 956, 956, false, kElement});
}

}  // namespace
}  // namespace tessera::planner
