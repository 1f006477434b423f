#include "tessera/device/machine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tessera/base/error.hpp"
#include "tessera/tests/support/temporary_folder.hpp"

namespace tessera::device {
namespace {

using testing::HasSubstr;

// Returns the error of machine_from_json for a text that it must refuse; fails the test if it
// accepts the text.
std::string refusal(const std::string& text) {
  try {
    machine_from_json(text, "m.json");
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::BadInput) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "accepted: " << text;
  return {};
}

// Returns the text of a bow in which the key `key` has the value `value`.
std::string bow_with(const std::string& key, const std::string& value) {
  return R"({"base": "bow", ")" + key + "\": " + value + "}";
}

TEST(MachinePreset, Gc200HasThePublishedFigures) {
  const Machine m = machine_preset("gc200");
  EXPECT_EQ(m.name, "gc200");
  EXPECT_EQ(m.tiles, 1472);
  EXPECT_EQ(m.tile_memory, Bytes(638976));
  EXPECT_EQ(m.clock_hz, 1.325e9);
  EXPECT_EQ(m.workers, 6);
  EXPECT_EQ(m.exchange_bytes_per_cycle, 4);
  EXPECT_EQ(m.tiles_per_exchange_bus, 2);
  EXPECT_EQ(m.data_path_bits, 64);
  EXPECT_EQ(m.half_half_conv_units, 16);
  EXPECT_EQ(m.half_float_conv_units, 8);
  EXPECT_EQ(m.float_float_conv_units, 8);
  EXPECT_EQ(m.word_bits, 16);
  EXPECT_EQ(m.arrange_bytes_per_cycle, 1);
  EXPECT_EQ(m.receive_start, Cycles(0));
  EXPECT_EQ(m.sync, Cycles(400));
  EXPECT_EQ(m.launch, Cycles(11));
}

TEST(MachinePreset, BowDiffersFromGc200InNameAndClockOnly) {
  Machine m = machine_preset("bow");
  EXPECT_EQ(m.clock_hz, 1.85e9);
  m.name = "gc200";
  m.clock_hz = 1.325e9;
  EXPECT_EQ(m, machine_preset("gc200"));
}

TEST(MachinePreset, Mk1HasFewerTilesLessMemoryAndNarrowerUnits) {
  Machine m = machine_preset("mk1");
  EXPECT_EQ(m.tiles, 1216);
  EXPECT_EQ(m.tile_memory, Bytes(262144));
  EXPECT_EQ(m.clock_hz, 1.6e9);
  EXPECT_EQ(m.tiles_per_exchange_bus, 1);
  EXPECT_EQ(m.half_half_conv_units, 8);
  EXPECT_EQ(m.half_float_conv_units, 8);
  EXPECT_EQ(m.float_float_conv_units, 4);
}

TEST(MachinePreset, EveryListedNameIsAPresetThatPassesItsOwnCheck) {
  ASSERT_EQ(machine_names(), (std::vector<std::string>{"gc200", "bow", "mk1"}));
  for (const std::string& name : machine_names()) {
    EXPECT_EQ(machine_preset(name).name, name);
    EXPECT_NO_THROW(check_machine(machine_preset(name), name));
  }
}

TEST(MachinePreset, RefusesAnUnknownNameAndListsTheKnownOnes) {
  try {
    machine_preset("mk3");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
    EXPECT_STREQ(e.what(), "machine \"mk3\" is not known; use one of gc200, bow, mk1");
  }
}

TEST(Machine, VectorWidthIsElementsPerDataPath) {
  const Machine m = machine_preset("gc200");
  EXPECT_EQ(m.vector_width(DataType::Float), 2);
  EXPECT_EQ(m.vector_width(DataType::Half), 4);
}

TEST(MachineJson, ComesBackEqualForEveryPreset) {
  for (const std::string& name : machine_names())
    EXPECT_EQ(machine_from_json(machine_to_json(machine_preset(name)), "text"),
              machine_preset(name));
}

TEST(MachineJson, ComesBackEqualWhenEveryFieldDiffersFromEveryPreset) {
  Machine m;
  m.name = "odd \"quoted\" \xc3\xa9\n";
  m.tiles = 7;
  m.tile_memory = Bytes((std::int64_t{1} << 40) - 1);
  m.clock_hz = 1.0 / 3 + 1e9;
  m.workers = 2;
  m.exchange_bytes_per_cycle = 9;
  m.tiles_per_exchange_bus = 3;
  m.data_path_bits = 512;
  m.half_half_conv_units = 0;
  m.half_float_conv_units = 1;
  m.float_float_conv_units = 2;
  m.word_bits = 32;
  m.arrange_bytes_per_cycle = 5;
  m.receive_start = Cycles(3);
  m.sync = Cycles(0);
  m.launch = Cycles(12);
  EXPECT_EQ(machine_from_json(machine_to_json(m), "text"), m);
}

TEST(MachineJson, ReadsAFileFromBeforeArrangingWasPriced) {
  const Machine m =
      machine_from_json(R"({"base": "bow", "receive_start": 160, "sync": 600})", "text");
  EXPECT_EQ(m.receive_start, Cycles(160));
  EXPECT_EQ(m.sync, Cycles(600));
  EXPECT_EQ(m.arrange_bytes_per_cycle, 1);
}

TEST(MachineJson, TakesMissingKeysFromTheBase) {
  const Machine m = machine_from_json(R"({"base": "gc200", "name": "small", "tiles": 4})", "text");
  Machine expected = machine_preset("gc200");
  expected.name = "small";
  expected.tiles = 4;
  EXPECT_EQ(m, expected);
}

TEST(MachineJson, AcceptsAWholeClock) {
  EXPECT_EQ(machine_from_json(bow_with("clock_hz", "1000000000"), "text").clock_hz, 1e9);
}

TEST(MachineJson, NeedsEveryKeyWithoutABase) {
  EXPECT_EQ(refusal(R"({"name": "n", "clock_hz": 1e9, "tiles": 4})"),
            "machine m.json: tile_memory is missing; it must be a whole number in "
            "1024..1099511627776, or inherited from a \"base\" (gc200, bow, mk1)");
  EXPECT_THAT(refusal("{}"), HasSubstr("name is missing"));
}

TEST(MachineJson, NamesAnUnknownKeyAndTheKnownOnes) {
  const std::string text = refusal(bow_with("tils", "4"));
  EXPECT_THAT(text, HasSubstr("m.json"));
  EXPECT_THAT(text, HasSubstr("tils is not known (value 4)"));
  EXPECT_THAT(text, HasSubstr("tiles, tile_memory"));
}

TEST(MachineJson, RefusesWrongTypes) {
  EXPECT_EQ(refusal(bow_with("tiles", "\"4\"")),
            "machine m.json: tiles is \"4\"; it must be a whole number in 1..1048576");
  EXPECT_THAT(refusal(bow_with("tiles", "4.0")), HasSubstr("tiles is 4.0"));
  EXPECT_THAT(refusal(bow_with("tiles", "null")), HasSubstr("tiles is null"));
  EXPECT_THAT(refusal(bow_with("tiles", "[4]")), HasSubstr("tiles is an array"));
  EXPECT_THAT(refusal(bow_with("name", "4")), HasSubstr("name is 4"));
  EXPECT_THAT(refusal(bow_with("clock_hz", "true")), HasSubstr("clock_hz is true"));
}

TEST(MachineJson, RefusesABadBase) {
  EXPECT_EQ(refusal(R"({"base": "mk3"})"),
            "machine m.json: base is \"mk3\"; it must be one of the presets gc200, bow, mk1");
  EXPECT_THAT(refusal(R"({"base": 2})"), HasSubstr("base is 2"));
}

TEST(MachineJson, RefusesAKeyGivenTwice) {
  EXPECT_THAT(refusal(R"({"base": "bow", "tiles": 4, "tiles": 5})"),
              HasSubstr("key \"tiles\" is given twice"));
}

TEST(MachineJson, RefusesMalformedText) {
  for (const char* text :
       {"", "{", "{\"tiles\": }", "{} {}", "\xff", "{\"name\": \"\xff\"}", "{\"tiles\": 4,}"}) {
    SCOPED_TRACE(text);
    EXPECT_THAT(refusal(text), HasSubstr("m.json: not JSON"));
  }
  EXPECT_THAT(refusal("{\n \"tiles\": }"), HasSubstr("line 2"));
  EXPECT_THAT(refusal("{\"tiles\": 1e999}"), HasSubstr("beyond the range of a double"));
  for (const char* text : {"[]", "4", "null", "\"bow\""})
    EXPECT_THAT(refusal(text), HasSubstr("the text is")) << text;
}

TEST(MachineJson, SurvivesDeepNesting) {
  const std::string deep(20000, '[');
  EXPECT_THAT(refusal(deep + std::string(20000, ']')), HasSubstr("nested too deeply"));
  EXPECT_THAT(refusal(deep), HasSubstr("nested too deeply"));
}

struct Edge {
  const char* key;
  const char* outside_low;
  const char* low;
  const char* high;
  const char* outside_high;
};

class MachineJsonEdge : public testing::TestWithParam<Edge> {};
std::ostream& operator<<(std::ostream& out, const Edge& edge) { return out << edge.key; }

TEST_P(MachineJsonEdge, TakesBothEndsOfTheLegalRangeAndNothingBeyond) {
  const Edge& e = GetParam();
  EXPECT_NO_THROW(machine_from_json(bow_with(e.key, e.low), "text"));
  EXPECT_NO_THROW(machine_from_json(bow_with(e.key, e.high), "text"));
  EXPECT_THAT(refusal(bow_with(e.key, e.outside_low)), HasSubstr(e.key));
  EXPECT_THAT(refusal(bow_with(e.key, e.outside_high)), HasSubstr(e.key));
  EXPECT_THAT(refusal(bow_with(e.key, "18446744073709551615")), HasSubstr("it must be"));
  EXPECT_THAT(refusal(bow_with(e.key, "-9223372036854775808")), HasSubstr("it must be"));
}

INSTANTIATE_TEST_SUITE_P(
    EveryKey, MachineJsonEdge,
    testing::Values(Edge{"tiles", "0", "1", "1048576", "1048577"},
                    Edge{"tile_memory", "1023", "1024", "1099511627776", "1099511627777"},
                    Edge{"clock_hz", "0.99", "1", "1e12", "1.01e12"},
                    Edge{"workers", "0", "1", "1024", "1025"},
                    Edge{"exchange_bytes_per_cycle", "0", "1", "1048576", "1048577"},
                    Edge{"tiles_per_exchange_bus", "0", "1", "1024", "1025"},
                    Edge{"data_path_bits", "0", "32", "65536", "65568"},
                    Edge{"data_path_bits", "33", "96", "128", "100"},
                    Edge{"half_half_conv_units", "-1", "0", "65536", "65537"},
                    Edge{"half_float_conv_units", "-1", "0", "65536", "65537"},
                    Edge{"float_float_conv_units", "-1", "0", "65536", "65537"},
                    Edge{"word_bits", "15", "16", "32", "48"},
                    Edge{"arrange_bytes_per_cycle", "0", "1", "1048576", "1048577"},
                    Edge{"receive_start", "-1", "0", "1000000000", "1000000001"},
                    Edge{"sync", "-1", "0", "1000000000", "1000000001"},
                    Edge{"launch", "-1", "0", "1000000000", "1000000001"}));

TEST(MachineCheck, RefusesANameThatIsEmptyOrTooLong) {
  Machine m = machine_preset("bow");
  m.name = std::string(100, 'n');
  EXPECT_NO_THROW(check_machine(m, "here"));
  for (const std::size_t length : {0, 101}) {
    m.name = std::string(length, 'n');
    EXPECT_THROW(check_machine(m, "here"), Error);
  }
}

TEST(MachineCheck, RefusesAClockThatIsNotANumber) {
  Machine m = machine_preset("bow");
  m.clock_hz = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(check_machine(m, "here"), Error);
}

TEST(MachineLoad, ReadsAPresetOrAFile) {
  EXPECT_EQ(load_machine("mk1"), machine_preset("mk1"));
  const test::TemporaryFolder folder;
  for (const char* name : {"machine.json", "machine"})
    EXPECT_EQ(load_machine(folder.write(name, R"({"base": "mk1", "tiles": 8})")).tiles, 8);
}

TEST(MachineLoad, NamesTheFileOfABadMachine) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("bad.json", R"({"base": "mk1", "tiles": 0})");
  try {
    load_machine(path);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::BadInput);
    EXPECT_THAT(e.what(), HasSubstr(path + ": tiles is 0"));
  }
}

TEST(MachineLoad, RefusesWhatIsNeitherAPresetNorAFile) {
  try {
    load_machine("bwo");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
    EXPECT_STREQ(e.what(), "machine \"bwo\" is neither a preset (gc200, bow, mk1) nor a JSON file");
  }
  EXPECT_THROW(load_machine(""), Error);
}

TEST(MachineLoad, RefusesAFileThatCannotBeRead) {
  for (const std::string& path : {testing::TempDir(), std::string("no_such_machine.json")}) {
    try {
      load_machine(path);
      ADD_FAILURE() << path;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::BadInput);
      EXPECT_THAT(e.what(), HasSubstr("gc200, bow, mk1"));
    }
  }
}

// A field that a caller forgets must not pass for a figure.
TEST(MachineCheck, RefusesFieldsThatWereNeverSet) {
  const Machine none;
  for (const auto field : {&Machine::tiles, &Machine::workers, &Machine::data_path_bits,
                           &Machine::exchange_bytes_per_cycle}) {
    Machine machine = machine_preset("gc200");
    machine.*field = none.*field;
    EXPECT_THROW(check_machine(machine, "test"), Error);
  }
}

}  // namespace
}  // namespace tessera::device
