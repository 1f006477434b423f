#include "tessera/tests/fuzz/targets.hpp"

#include <stdexcept>
#include <string>

#include "tessera/base/error.hpp"

namespace tessera::fuzz {

std::span<const Target> targets() {
  static constexpr Target kTargets[] = {{"mtx", read_mtx},
                                        {"smtx", read_smtx},
                                        {"mask", read_mask},
                                        {"npy", read_npy},
                                        {"npz", read_npz},
                                        {"npz_arrays", read_npz_arrays},
                                        {"safetensors", read_safetensors},
                                        {"archive", archive},
                                        {"checkpoint", checkpoint},
                                        {"saved_weights", saved_weights},
                                        {"plan_json", plan_json},
                                        {"machine_json", machine_json},
                                        {"pod_json", pod_json},
                                        {"pod_plan_json", pod_plan_json},
                                        {"option_json", option_json},
                                        {"constraint_json", constraint_json},
                                        {"cached_plan", cached_plan},
                                        {"bucket_words", bucket_words},
                                        {"round_trip", round_trip},
                                        {"tile_layer", tile_layer},
                                        {"host_layer", host_layer},
#ifdef TESSERA_FUZZ_ALL
                                        {"layer_keys", layer_keys},
                                        {"network_json", network_json},
                                        {"command_line", command_line},
                                        {"response_file", response_file},
#endif
                                        {"storage_formats", storage_formats}};
  return kTargets;
}

void require(bool holds, std::string_view promise) {
  if (!holds) throw std::logic_error("a promise is broken: " + std::string(promise));
}

bool accepts(const std::function<void()>& code) {
  constexpr std::size_t kLongestMessage = 4096;
  try {
    code();
    return true;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Internal) throw;
    const std::string message = error.what();
    require(!message.empty() && message.size() <= kLongestMessage, "messages have a usable length");
    return false;
  }
}

}  // namespace tessera::fuzz
