#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/io/write.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/tests/support/process.hpp"
#include "tessera/tools/page/report_page.hpp"
#include "tessera/train/network_file.hpp"

namespace tessera::test {
namespace {

planner::NetworkFile read_network(const std::string& path) {
  return train::read_network(read_file(path), path);
}

using nlohmann::json;
using testing::HasSubstr;

constexpr const char* kNetwork = R"({
  "batch": 24, "data_type": "float",
  "layers": [
    {"inputs": 40, "outputs": 64, "density": 0.2, "activation": "relu"},
    {"inputs": 64, "outputs": 8, "density": 0.5, "bias": false}],
  "loss": "softmax-cross-entropy",
  "optimiser": {"rule": "adam", "rate": 0.01}})";

Outcome network(const std::string& text, std::vector<std::string> words = {}) {
  const TemporaryFolder folder;
  words.insert(words.begin(),
               {TESSERA_TOOL, "network", folder.write("net.json", text), "--tiles-per-ipu=32"});
  return run(words);
}

TEST(NetworkCommand, ReportsEveryWorkOfEveryLayerAndTheFallOfTheLoss) {
  const Outcome outcome = network(kNetwork, {"--steps=5", "--json"});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result["layers"], 2);
  ASSERT_EQ(result["losses"].size(), 5u);
  EXPECT_LT(result["losses"][4], result["losses"][0]);
  std::int64_t cycles = 0, planned = 0, moved = 0;
  for (const json& work : result["work"]) {
    cycles += work["cycles"].get<std::int64_t>();
    planned += work["planned_cycles"].get<std::int64_t>();
    moved += work["moved_bytes"].get<std::int64_t>();
  }
  EXPECT_EQ(result["moved_bytes"], moved);
  EXPECT_GT(moved, 0);
  EXPECT_EQ(result["cycles"], cycles);
  EXPECT_EQ(result["planned_cycles"], planned);
  EXPECT_LE(result["planned_without_weights_cycles"], result["layer_by_layer_cycles"]);
  std::size_t moves = 0;  // of values to a second layout, which the plan may choose
  for (const json& work : result["work"]) moves += work["work"] == "re-home" ? 1 : 0;
  EXPECT_LE(moves, 1u);
  // The first layer has Fwd, activation, derivative, GradW and update, the second one Fwd, loss,
  // GradA, GradW and update; only the first one has a bias.
  EXPECT_EQ(result["work"].size(), 5u + 5u + 1u + moves);
  EXPECT_EQ(result["work"].back()["layer"], "all");
  // Tiles with memory of their own give the same result, but for the measured time of the host.
  json isolated = json::parse(network(kNetwork, {"--steps=5", "--json", "--isolate"}).out);
  json shared = result;
  for (json* one : {&isolated, &shared}) {
    EXPECT_GT((*one)["pattern_update"]["host_seconds"].get<double>(), 0);
    EXPECT_GE((*one)["pattern_update"]["steps_for_5_percent"].get<int>(), 1);
    (*one)["pattern_update"].erase("host_seconds");
    (*one)["pattern_update"].erase("steps_for_5_percent");
  }
  EXPECT_EQ(isolated, shared);
  // Adam has two states of 4 bytes for each value of 4 bytes.
  const json& update = shared["pattern_update"];
  EXPECT_EQ(update["download_bytes"].get<std::int64_t>() % 12, 0);
  EXPECT_GT(update["upload_bytes"], update["download_bytes"]);
  EXPECT_NEAR(update["upload_seconds"].get<double>(),
              1e-5 + update["upload_bytes"].get<double>() / 20e9, 1e-12);
}

TEST(NetworkCommand, ReportsEveryStepAndADenseNetworkBesideIt) {
  const json result = json::parse(network(kNetwork, {"--json"}).out);
  const auto sum = [](const json& rows, const std::vector<const char*>& keys) {
    std::int64_t all = 0;
    for (const json& row : rows)
      for (const char* key : keys) all += row.at(key).get<std::int64_t>();
    return all;
  };
  EXPECT_EQ(sum(result["steps"], {"cycles", "overhead_cycles"}), result["cycles"]);
  EXPECT_EQ(sum(result["steps"], {"moved_bytes"}), result["moved_bytes"]);
  EXPECT_EQ(sum(result["exchanges"], {"moved_bytes"}), result["moved_bytes"]);
  EXPECT_EQ(sum(result["memory"]["at_peak"], {"bytes"}), result["tile_bytes"]);
  const json& verdict = result["verdict"];
  EXPECT_EQ(sum(verdict["work"], {"cycles"}), result["cycles"]);
  EXPECT_EQ(sum(verdict["work"], {"dense_cycles"}), verdict["dense_cycles"]);
  // Values of 4 bytes with two states: 12 bytes for each of the weights of a tile.
  EXPECT_EQ(verdict["dense_tile_bytes"], 12 * (40 * 64 / 32 + 64 * 8 / 32));
  // The second layer fetches what the first one has left on its tiles.
  bool fetches = false;
  for (const json& one : result["exchanges"])
    if (one["layer"] == 2 && one["work"] == "Fwd")
      for (const json& from : one["from"])
        fetches |= from.get<std::string>().rfind("layer 1 Fwd: ", 0) == 0;
  EXPECT_TRUE(fetches) << result["exchanges"];
}

TEST(NetworkCommand, SaysThatADenseNetworkDoesNotFit) {
  json text = json::parse(kNetwork);
  for (const char* side : {"inputs", "outputs"}) text["layers"][0][side] = 2048;
  text["layers"][1]["inputs"] = 2048;
  for (json& layer : text["layers"]) layer["density"] = 0.01;
  const Outcome outcome = network(text.dump(), {"--json"});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  const json verdict = json::parse(outcome.out).at("verdict");
  EXPECT_EQ(verdict["dense_cycles"], nullptr);
  EXPECT_THAT(verdict["text"].get<std::string>(), HasSubstr("sparse wins: the dense network"));
}

constexpr const char* kGelu = R"({
  "batch": 17, "data_type": "float",
  "layers": [{"inputs": 23, "outputs": 14, "density": 0.3, "activation": "gelu"}],
  "loss": "softmax-cross-entropy", "optimiser": {"rule": "sgd", "rate": 0.1}})";

TEST(NetworkCommand, HasTheLossesOfThisComputerWithGeluBeforeTheLoss) {
  const auto losses = [](const char* option) {
    const TemporaryFolder folder;
    const Outcome outcome = run(
        {TESSERA_TOOL, "network", folder.write("net.json", kGelu), option, "--steps=3", "--json"});
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    return json::parse(outcome.out).at("losses").get<std::vector<double>>();
  };
  const std::vector<double> here = losses("--machine=host");
  ASSERT_EQ(here.size(), 3u);
  for (const char* tiles : {"--tiles-per-ipu=1", "--tiles-per-ipu=2", "--tiles-per-ipu=16"})
    for (std::size_t step = 0; step < 3; ++step)
      EXPECT_NEAR(losses(tiles)[step], here[step], 1e-4) << tiles << ", step " << step + 1;
}

// A loss that is not finite is an error of the file, whose rate is too large.
TEST(NetworkCommand, EndsWithStepAndLayerIfTheLossIsNotFinite) {
  json text = json::parse(kNetwork);
  text["optimiser"] = {{"rule", "sgd"}, {"rate", 1e30}};
  const TemporaryFolder folder;
  const std::string file = folder.write("net.json", text.dump());
  for (const char* option : {"--machine=host", "--tiles-per-ipu=32"})
    for (const char* type : {"float", "half"}) {
      text["data_type"] = type;
      folder.write("net.json", text.dump());
      const Outcome outcome = run({TESSERA_TOOL, "network", file, option, "--steps=8", "--json"});
      EXPECT_EQ(outcome.exit, 2) << option;
      EXPECT_EQ(outcome.out, "");
      EXPECT_THAT(outcome.err, testing::MatchesRegex("tessera: network: the loss of step [2-8] is "
                                                     ".*; the largest value is .* in layer [12]; a "
                                                     "smaller learning rate may help\n"));
    }
}

// The same losses with dense layers and results that are computed again, which the lines show.
TEST(NetworkCommand, RunsDenseLayersAndComputesResultsAgain) {
  std::string text = kNetwork;
  text.replace(text.find("\"density\": 0.2"), 14, "\"dense\": true");
  const Outcome kept = network(text, {"--steps=3", "--json"});
  ASSERT_EQ(kept.exit, 0) << kept.err;
  const Outcome again = network(text, {"--steps=3", "--json", "--recompute"});
  ASSERT_EQ(again.exit, 0) << again.err;
  const json a = json::parse(kept.out), b = json::parse(again.out);
  EXPECT_EQ(a["losses"], b["losses"]);
  EXPECT_LT(a["cycles"], b["cycles"]);
  const auto is_again = [](const json& work) { return work["work"] == "recompute"; };
  EXPECT_EQ(std::ranges::count_if(a["work"], is_again), 0);
  EXPECT_EQ(std::ranges::count_if(b["work"], is_again), 1);
  std::string forward = text.substr(0, text.find(",\n  \"loss\"")) + "}";
  const Outcome refused = network(forward, {"--recompute"});
  EXPECT_NE(refused.exit, 0);
  EXPECT_THAT(refused.err, HasSubstr("--recompute is for training steps"));
}

TEST(NetworkCommand, ExplainsThePlanAndPrintsTheProgram) {
  const Outcome outcome = network(kNetwork, {"--explain"});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  for (const char* part : {"patterns   new ones for all layers: ", "joint plan: ",
                           "% fewer than the cheapest plan of each layer in a program of its own, ",
                           "in one program these plans take ", "layers that stand alone",
                           "layer 2 GradW", "exchange hand over", "layer 1 parameters: bias"})
    EXPECT_THAT(outcome.out, HasSubstr(part));
}

TEST(NetworkCommand, ComputesOutputsWithoutALossAndWritesATrace) {
  const TemporaryFolder folder;
  json text = json::parse(kNetwork);
  text.erase("loss");
  text.erase("optimiser");
  const Outcome outcome = network(text.dump(), {"--trace=" + (folder / "trace.json")});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("forward on gc200"));
  EXPECT_THAT(read_file(folder / "trace.json"), HasSubstr("activate"));
}

TEST(NetworkCommand, GivesTheLossesOfTheModelledMachineOnThisComputer) {
  const TemporaryFolder folder;
  const std::string file = folder.write("net.json", kNetwork);
  const auto run_on = [&](const std::string& machine) {
    return run({TESSERA_TOOL, "network", file, "--steps=4", "--json", "--machine=" + machine});
  };
  const Outcome here = run_on("host"), modelled = run_on("gc200");
  ASSERT_EQ(here.exit, 0) << here.err;
  ASSERT_EQ(modelled.exit, 0) << modelled.err;
  const json result = json::parse(here.out), other = json::parse(modelled.out);
  ASSERT_EQ(result["losses"].size(), 4u);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(result["losses"][i].get<double>(), other["losses"][i].get<double>(), 1e-5);
  double seconds = 0;
  for (const json& work : result["work"]) seconds += work["seconds"].get<double>();
  EXPECT_NEAR(result["seconds"].get<double>(), seconds, 1e-9);
  EXPECT_EQ(result["machine"], "host");
  const Outcome text = run({TESSERA_TOOL, "network", file, "--machine=host"});
  EXPECT_THAT(text.out, HasSubstr("one training step on this computer"));
  EXPECT_THAT(text.out, HasSubstr("2       GradA"));
}

TEST(NetworkCommand, WritesAPageOfARunOnThisComputer) {
  if (!tools::can_make_pages()) GTEST_SKIP() << "built without the chart library";
  const TemporaryFolder folder;
  const std::string path = folder.write("net.json", kNetwork);
  const Outcome outcome = run({TESSERA_TOOL, "network", path, "--machine=host", "--steps=3",
                               "--json", "--html=" + (folder / "page.html")});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  const std::string page = read_file(folder / "page.html");
  EXPECT_THAT(page, HasSubstr(R"("study":"network on this computer")"));
  const json report = json::parse(outcome.out);
  for (const json& one : report["work"])
    EXPECT_THAT(page, HasSubstr(R"("seconds":)" + one["seconds"].dump())) << one;
}

TEST(NetworkCommand, ReadsWeightsBesideItsFile) {
  const TemporaryFolder folder;
  io::write_smtx_file(folder / "first.smtx", sparse::random_pattern(64, 40, {1, 1}, 0.1, 3));
  json text = json::parse(kNetwork);
  text["layers"][0].erase("density");
  text["layers"][0]["weights"] = "first.smtx";
  const std::string path = folder.write("net.json", text.dump());
  const planner::NetworkFile file = read_network(path);
  EXPECT_DOUBLE_EQ(file.spec.layers[0].density, 0.1);
  EXPECT_EQ(train::weights_of(file, 0, 1).blocks(), 256);
  text["layers"][0]["inputs"] = 41;
  EXPECT_THAT(message_of([&] { read_network(folder.write("bad.json", text.dump())); }),
              HasSubstr("64 x 40 weights; layer 1 of"));
}

TEST(NetworkCommand, RefusesWeightsThatItsTypeDoesNotHold) {
  const TemporaryFolder folder;
  json text = json::parse(kNetwork);
  text["layers"][0].erase("density");
  text["layers"][0]["weights"] = "a.mtx";
  const auto load = [&](const char* type, const char* value) {
    text["data_type"] = type;
    folder.write("a.mtx", std::string("%%MatrixMarket matrix coordinate real general\n64 40 1\n") +
                              "5 6 " + value + "\n");
    return read_network(folder.write("net.json", text.dump()));
  };
  EXPECT_THAT(message_of([&] { load("half", "-70000"); }),
              HasSubstr("a.mtx: a value is -70000; half holds -65504 to 65504"));
  EXPECT_THAT(message_of([&] { load("float", "1e300"); }), HasSubstr("a value is 1e+300; float"));
  EXPECT_THAT(message_of([&] { load("bfloat16", "nan"); }), HasSubstr("a value is nan; bfloat16"));
  load("bfloat16", "70000");
}

TEST(NetworkCommand, DrawsTheValuesOfAPattern) {
  const TemporaryFolder folder;
  io::write_smtx_file(folder / "a.smtx", sparse::random_pattern(64, 40, {1, 1}, 0.3, 3));
  json text = json::parse(kNetwork);
  text["layers"][0].erase("density");
  text["layers"][0]["weights"] = "a.smtx";
  const planner::NetworkFile file = read_network(folder.write("net.json", text.dump()));
  const std::vector<float> values = train::weights_of(file, 0, 1).values;  // 12 of each output
  EXPECT_EQ(values.size(), 768);
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  EXPECT_THAT(*least, testing::AllOf(testing::Ge(-0.5f), testing::Lt(-0.4f)));
  EXPECT_THAT(*most, testing::AllOf(testing::Le(0.5f), testing::Gt(0.4f)));
}

// A network of three layers, one of them dense, of which the second one may have two layouts.
constexpr const char* kDeep = R"({
  "batch": 24, "data_type": "half",
  "layers": [
    {"inputs": 40, "outputs": 64, "density": 0.2, "activation": "relu"},
    {"inputs": 64, "outputs": 48, "density": 0.3, "block_size": 4, "activation": "relu"},
    {"inputs": 48, "outputs": 8, "dense": true}],
  "loss": "softmax-cross-entropy",
  "optimiser": {"rule": "momentum", "rate": 0.05}})";

TEST(NetworkCommand, RunsSavedBucketsWithTheSameResults) {
  const TemporaryFolder folder;
  const std::string file = folder / "net.safetensors";
  const auto run_with = [&](const std::string& option) {
    const Outcome outcome = network(kDeep, {"--steps=3", "--json", option});
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    json report = json::parse(outcome.out);
    report["pattern_update"].erase("host_seconds");
    report["pattern_update"].erase("steps_for_5_percent");
    return report;
  };
  const json encoded = run_with("--save-buckets=" + file);
  EXPECT_EQ(encoded, run_with("--buckets=" + file));
  // The weights are those of the file, and not of the seed.
  const Outcome other = network(kDeep, {"--seed=2", "--json", "--buckets=" + file});
  EXPECT_EQ(other.exit, 0) << other.err;
  const std::string bytes = read_file(file);
  EXPECT_EQ(
      network(kDeep, {"--buckets=" + file, "--save-buckets=" + (folder / "again.safetensors")})
          .exit,
      0);
  EXPECT_EQ(read_file(folder / "again.safetensors"), bytes);
}

TEST(NetworkCommand, RefusesBucketsOfAnotherNetworkAndDamagedOnes) {
  const TemporaryFolder folder;
  const std::string file = folder / "net.safetensors";
  ASSERT_EQ(network(kDeep, {"--save-buckets=" + file}).exit, 0);
  EXPECT_THAT(network(kNetwork, {"--buckets=" + file}).err,
              HasSubstr("net.safetensors: it has 3 layers, and the network has 2"));
  json text = json::parse(kDeep);
  text["layers"][0]["inputs"] = 44;
  const Outcome other = network(text.dump(), {"--buckets=" + file});
  EXPECT_EQ(other.exit, 3);
  EXPECT_THAT(other.err, HasSubstr("net.safetensors: layer 1: "));
  text["layers"][2] = {{"inputs", 48}, {"outputs", 8}, {"density", 0.5}};
  text["layers"][0]["inputs"] = 40;
  EXPECT_THAT(network(text.dump(), {"--buckets=" + file}).err,
              HasSubstr("layer 3 is dense in the file, and not in the network"));
  EXPECT_EQ(network(kDeep, {"--machine=host", "--buckets=" + file}).exit, 2);
  const std::string whole = read_file(file);
  for (const std::size_t bytes :
       {std::size_t(0), std::size_t(12), std::size_t(39), std::size_t(200), whole.size() - 1}) {
    folder.write("cut.safetensors", whole.substr(0, bytes));
    EXPECT_EQ(network(kDeep, {"--buckets=" + (folder / "cut.safetensors")}).exit, 3) << bytes;
  }
  for (const std::size_t at : {std::size_t(3), std::size_t(8), std::size_t(17), std::size_t(60),
                               whole.size() / 2, whole.size() - 1}) {
    std::string damaged = whole;
    damaged[at] = char(damaged[at] ^ 4);
    folder.write("damaged.safetensors", damaged);
    EXPECT_EQ(network(kDeep, {"--buckets=" + (folder / "damaged.safetensors")}).exit, 3) << at;
  }
}

// A change of the file and what the message must name.
struct Fault {
  const char* path;
  const char* value;
  const char* named;
};

TEST(NetworkCommand, NamesWhatIsWrongInAFile) {
  for (const Fault& fault : {
           Fault{"/batch", "0", "batch is 0; it must be"}, Fault{"/batch", "\"many\"", "batch"},
           Fault{"/layers", "[]", "layers is a list of 0"},
           Fault{"/layers/0/density", "1.5", "density is 1.5; it must be in [0, 1]"},
           Fault{"/layers/0/weights", "\"a.smtx\"", "both or neither of density and weights"},
           Fault{"/layers/0", R"({"inputs": 40, "outputs": 64, "weights": ""})",
                 "weights is empty; it must be the name of a file"},
           Fault{"/layers/1/inputs", "63", "layer 2 has 63 inputs, but layer 1 has 64 outputs"},
           Fault{"/layers/0/activation", "\"tanh\"", "one of none, relu, gelu"},
           Fault{"/layers/1/cap", "3", "left out unless the activation is relu"},
           Fault{"/layers/0/cap", "1e39", "cap is 1e+39; it must be in the range of float"},
           Fault{"/layers/0/cap", "1e-46", "cap is 1e-46; it must be in the range of float"},
           Fault{"/layers/0/block_size", "[4]", "block_size"},
           Fault{"/layers/0/block_size", "[4, 0]", "block_size"},
           Fault{"/layers/0/colour", "1", "colour"},
           Fault{"/loss", "\"hinge\"", "softmax-cross-entropy"},
           Fault{"/optimiser/rate", "-1", "rate is -1; it must be at least 0"},
           Fault{"/optimiser/rule", "\"rmsprop\"", "sgd, momentum"},
           Fault{"/optimiser/momentum", "0.5", "momentum"},  // not of Adam
       }) {
    json text = json::parse(kNetwork);
    text[json::json_pointer(fault.path)] = json::parse(fault.value);
    const Outcome outcome = network(text.dump());
    EXPECT_EQ(outcome.exit, 3) << fault.path;
    EXPECT_THAT(outcome.err, HasSubstr(fault.named));
  }
  EXPECT_EQ(network("{").exit, 3);
  EXPECT_EQ(network(kNetwork, {"--steps=0"}).exit, 2);
  EXPECT_THAT(network(kNetwork, {"--seed=-1"}).err,
              HasSubstr("--seed: the value is -1; it must be a whole number in 0..2^64 - 1"));
  EXPECT_EQ(network(kNetwork, {"--machine=host", "--isolate"}).exit, 2);
}

TEST(NetworkCommand, NamesTheLayerThatDoesNotFit) {
  json text = json::parse(kNetwork);
  text["batch"] = 1'000'000;
  const Outcome outcome = network(text.dump());
  EXPECT_EQ(outcome.exit, 4);
  EXPECT_THAT(outcome.err, HasSubstr("layer 1"));
}

}  // namespace
}  // namespace tessera::test
