#include "tessera/device/pod.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tessera/base/error.hpp"
#include "tessera/tests/support/temporary_folder.hpp"

namespace tessera::device {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

const std::string kTwo =
    R"({"name": "two", "machine": "bow", "levels": [{"kind": "ring", "devices": 2,)"
    R"( "bytes_per_second": 58.4e9, "step_seconds": 2.4e-6, "barrier_seconds": 3e-8}]})";

std::string two_with(const std::string& old_text, const std::string& new_text) {
  std::string text = kTwo;
  const std::size_t at = text.find(old_text);
  EXPECT_NE(at, std::string::npos) << old_text;
  return text.replace(at, old_text.size(), new_text);
}

TEST(Pod, PresetsArePairsInRingsJoinedByASwitch) {
  for (const std::int64_t devices : {4, 16, 64, 256}) {
    const Pod pod = pod_preset("bow-pod" + std::to_string(devices));
    EXPECT_EQ(pod.devices(), devices);
    EXPECT_EQ(pod.machine, machine_preset("bow"));
    EXPECT_EQ(pod.levels[0].devices, 2);
    EXPECT_EQ(pod.levels.size(), devices > 64 ? 3U : 2U);
    EXPECT_NO_THROW(check_pod(pod, "preset"));
  }
  // 15 ns a hop, one hop and one for every four devices, there and back.
  EXPECT_DOUBLE_EQ(pod_preset("bow-pod16").barrier_seconds(), 2 * 15e-9 * (1 + 16.0 / 4));
  EXPECT_DOUBLE_EQ(pod_preset("bow-pod64").barrier_seconds(), 2 * 15e-9 * (1 + 64.0 / 4));
}

TEST(Pod, OfACountOfDevicesHasThatManyOrRefuses) {
  const Machine bow = machine_preset("bow");
  for (const std::int64_t devices : {1, 2, 4, 6, 12, 62, 64, 128, 192, 16384, 65536})
    EXPECT_EQ(pod_of(bow, devices).devices(), devices);
  EXPECT_TRUE(pod_of(bow, 1).levels.empty());
  for (const std::int64_t devices : {-1, 0, 3, 63, 66, 100, 65600, 131072})
    EXPECT_THAT([&] { pod_of(bow, devices); },
                ThrowsMessage<Error>(HasSubstr(std::to_string(devices) + " devices")));
}

TEST(Pod, ComesBackEqualFromItsText) {
  for (const std::string& name : pod_names())
    EXPECT_EQ(pod_from_json(pod_to_json(pod_preset(name)), "text"), pod_preset(name));
  Pod odd{"odd", machine_preset("mk1"), {{LevelKind::Switch, 3, 1.0 / 3 + 1, 0, 0.125}}};
  EXPECT_EQ(pod_from_json(pod_to_json(odd), "text"), odd);
}

TEST(Pod, TakesAMachineByNameOrAsAnObject) {
  EXPECT_EQ(pod_from_json(kTwo, "two.json").machine, machine_preset("bow"));
  const Pod pod = pod_from_json(two_with("\"bow\"", R"({"base": "gc200", "tiles": 8})"), "text");
  EXPECT_EQ(pod.machine.tiles, 8);
}

TEST(Pod, RefusesWhatIsNoPodWithPlaceAndLegalValues) {
  struct Case {
    const char *old_text, *new_text, *message;
  };
  for (const Case& c : {
           Case{"\"ring\"", "\"line\"", "levels[0].kind is \"line\"; it must be one of ring, full"},
           Case{"\"devices\": 2", "\"devices\": 0", "levels[0].devices is 0"},
           Case{"\"devices\": 2", "\"devices\": 65537", "levels[0].devices is 65537"},
           Case{"58.4e9", "0", "levels[0].bytes_per_second is 0; it must be a number in 1..1e15"},
           Case{"2.4e-6", "-1", "levels[0].step_seconds is -1"},
           Case{"3e-8", "2", "levels[0].barrier_seconds is 2"},
           Case{"\"barrier_seconds\"", "\"barrier\"", "levels[0].barrier_seconds"},
           Case{"\"bow\"", "\"host\"", "machine is \"host\"; it must be an object or one of gc200"},
           Case{"\"bow\"", "7", "machine"},
           Case{"\"name\"", "\"names\"", "name"},
           Case{"\"two\"", "\"\"", "name is 0 bytes long"},
       })
    EXPECT_THAT([&] { pod_from_json(two_with(c.old_text, c.new_text), "p.json"); },
                ThrowsMessage<Error>(HasSubstr(c.message)));
  EXPECT_THAT([] { pod_from_json("[]", "p.json"); }, ThrowsMessage<Error>(HasSubstr("p.json")));
  Pod pod = pod_preset("bow-pod4");
  pod.levels = {{LevelKind::Ring, 65536, 1, 0, 0}, {LevelKind::Ring, 2, 1, 0, 0}};
  EXPECT_THAT([&] { check_pod(pod, "p"); }, ThrowsMessage<Error>(HasSubstr("131072")));
  pod.levels.assign(9, {LevelKind::Ring, 1, 1, 0, 0});
  EXPECT_THAT([&] { check_pod(pod, "p"); }, ThrowsMessage<Error>(HasSubstr("at most 8 levels")));
}

TEST(Pod, IsLoadedByPresetOrFile) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("two.json", kTwo);
  EXPECT_EQ(load_pod(path), pod_from_json(kTwo, "text"));
  EXPECT_EQ(load_pod("bow-pod16"), pod_preset("bow-pod16"));
  EXPECT_THAT([] { load_pod("pod9"); }, ThrowsMessage<Error>(HasSubstr("bow-pod256")));
  EXPECT_THAT([] { load_pod("/nowhere/p.json"); }, ThrowsMessage<Error>(HasSubstr("p.json")));
  EXPECT_THAT([] { pod_preset("pod9"); }, ThrowsMessage<Error>(HasSubstr("bow-pod4")));
}

}  // namespace
}  // namespace tessera::device
