#include "tessera/device/host_link.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tessera/base/error.hpp"
#include "tessera/tests/support/temporary_folder.hpp"

namespace tessera::device {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::string bow_with(const std::string& key, const std::string& value) {
  return R"({"base": "bow", ")" + key + "\": " + value + "}";
}

TEST(HostLink, ATransferTakesTheLatencyAndItsBytes) {
  EXPECT_DOUBLE_EQ(HostLink().transfer_seconds(Bytes(2'000'000)), 1e-5 + 1e-4);
  EXPECT_EQ(HostLink().transfer_seconds(Bytes(0)), 0);
  EXPECT_DOUBLE_EQ((HostLink{1e9, 0}).transfer_seconds(Bytes(500)), 5e-7);
}

TEST(HostLink, IsReadFromTheFileOfAMachineAndMayBeMissing) {
  EXPECT_EQ(host_link_from_json(R"({"base": "bow"})", "text"), HostLink());
  const std::string both =
      R"({"base": "bow", "host_latency_seconds": 0, "host_bytes_per_second": 12500000000})";
  EXPECT_EQ(host_link_from_json(both, "text"), (HostLink{12.5e9, 0}));
  EXPECT_EQ(machine_from_json(both, "text"), machine_preset("bow"));
}

TEST(HostLink, ComesBackEqualBesideItsMachine) {
  const HostLink link{1.5e9 + 1.0 / 3, 0.25};
  const std::string text = machine_to_json(machine_preset("mk1"), link);
  EXPECT_EQ(host_link_from_json(text, "text"), link);
  EXPECT_EQ(machine_from_json(text, "text"), machine_preset("mk1"));
}

TEST(HostLink, TakesBothEndsOfItsRangesAndNothingBeyond) {
  struct Edge {
    const char *key, *below, *least, *most, *above;
  };
  for (const Edge& e : {Edge{"host_bytes_per_second", "0.99", "1", "1e15", "1.01e15"},
                        Edge{"host_latency_seconds", "-1e-9", "0", "1", "1.01"}}) {
    for (const char* legal : {e.least, e.most})
      EXPECT_NO_THROW(host_link_from_json(bow_with(e.key, legal), "text"));
    for (const char* bad : {e.below, e.above, "\"fast\"", "null"})
      for (const auto& read : {+[](const std::string& t) { machine_from_json(t, "m.json"); },
                               +[](const std::string& t) { host_link_from_json(t, "m.json"); }})
        EXPECT_THAT([&] { read(bow_with(e.key, bad)); },
                    ThrowsMessage<Error>(HasSubstr("machine m.json: " + std::string(e.key))));
  }
}

TEST(HostLink, IsLoadedByPresetOrFile) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(load_host_link("gc200"), HostLink());
  EXPECT_EQ(load_host_link(folder.write("m.json", bow_with("host_bytes_per_second", "1e9"))),
            (HostLink{.bytes_per_second = 1e9}));
  EXPECT_THROW(load_host_link("nothing"), Error);
  EXPECT_THROW(load_host_link("host"), Error);
}

}  // namespace
}  // namespace tessera::device
