#include "tessera/train/pattern_update.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tessera/json/value.hpp"

namespace tessera::train {
namespace {

using Json = json::Value;

// The bytes of all rewires and layers together.
struct Sums {
  std::int64_t rewires = 0;  // that changed a layer
  Bytes upload, download;
  Cycles gradient, selection;
  std::int64_t searches = 0;
  double modelling = 0;  // seconds
};

Sums sums_of(const Trainer& trainer) {
  const std::int64_t states = states_of(trainer.options().optimiser);
  Sums sums{.rewires = trainer.pattern_changes().rewires};
  for (std::int64_t i = 0; i < trainer.network().layers(); ++i) {
    const MachineLayer& layer = *trainer.network().state(i).made.machine;
    const UpdateTraffic& traffic = layer.update_traffic();
    sums.upload += traffic.words + traffic.values * (1 + states);
    sums.download += traffic.read + traffic.values * states;
    const SearchFigures& search = layer.search_figures();
    sums.upload += search.upload;
    sums.download += search.download;
    sums.gradient += search.gradient;
    sums.selection += search.selection;
    sums.searches += search.runs;
    sums.modelling += search.seconds;
  }
  return sums;
}

void time_transfers(const device::HostLink& link, PatternUpdate& update) {
  update.upload_seconds = link.transfer_seconds(update.upload);
  update.download_seconds = link.transfer_seconds(update.download);
}

// Returns the least whole number above a limit.
std::int64_t first_above(double limit) {
  constexpr double kMost = 1e15;
  return std::int64_t(std::floor(std::min(limit, kMost))) + 1;
}

std::int64_t steps_until_rare(const PatternUpdate& update, double step_seconds) {
  return steps_for_share(update.seconds(), step_seconds, kShareOfRewires);
}

Json transfers_of(const PatternUpdate& update) {
  return {{"upload_bytes", update.upload.value},
          {"download_bytes", update.download.value},
          {"upload_seconds", update.upload_seconds},
          {"download_seconds", update.download_seconds},
          {"host_seconds", update.host_seconds}};
}

}  // namespace

std::optional<PatternUpdate> pattern_update(const Trainer& trainer, const ModelledMachine& on) {
  const Sums sums = sums_of(trainer);
  if (sums.rewires == 0) return std::nullopt;
  // Searches are modelled within the seconds of the rewires; clocks are read at other moments.
  const double host_seconds = std::max(trainer.pattern_changes().seconds - sums.modelling, 0.0);
  PatternUpdate mean{.rewires = sums.rewires,
                     .upload = Bytes(sums.upload.value / sums.rewires),
                     .download = Bytes(sums.download.value / sums.rewires),
                     .host_seconds = host_seconds / double(sums.rewires)};
  mean.gradient = Cycles(sums.gradient.value / sums.rewires);
  mean.selection = Cycles(sums.selection.value / sums.rewires);
  mean.searches = double(sums.searches) / double(sums.rewires);
  mean.machine_seconds = double((mean.gradient + mean.selection).value) / on.machine().clock_hz;
  time_transfers(on.link(), mean);
  return mean;
}

std::int64_t steps_for_share(double rewire_seconds, double step_seconds, double share) {
  return first_above(rewire_seconds * (1 - share) / (share * step_seconds));
}

std::optional<std::int64_t> steps_to_beat(double rewire_seconds, double step_seconds,
                                          double dense_seconds) {
  if (step_seconds >= dense_seconds) return std::nullopt;
  return first_above(rewire_seconds / (dense_seconds - step_seconds));
}

std::string to_text(const PatternUpdate& update, double step_seconds,
                    std::optional<double> dense_seconds, const device::HostLink& link,
                    const std::string& machine) {
  std::string text = fmt::format(
      "rewire     mean of {}: {} bytes to {} ({:.3f} ms) and {} from there ({:.3f} ms) at {:.3g} "
      "GB/s, {:.3f} ms on this computer (measured)\n",
      update.rewires, update.upload.value, machine, 1e3 * update.upload_seconds,
      update.download.value, 1e3 * update.download_seconds, link.bytes_per_second * 1e-9,
      1e3 * update.host_seconds);
  if (update.gradient + update.selection > Cycles())
    text += fmt::format(
        "search     {} cycles for the dense gradients of all layers and {} for their best places, "
        "{:.3f} ms; {:.1f} runs\n",
        update.gradient.value, update.selection.value, 1e3 * update.machine_seconds,
        update.searches);
  text += fmt::format(
      "interval   a rewire costs less than {:.0f} % of the time if there are {} steps or more "
      "from one to the next",
      100 * kShareOfRewires, steps_until_rare(update, step_seconds));
  if (!dense_seconds) return text + "\n";
  const auto beats = steps_to_beat(update.seconds(), step_seconds, *dense_seconds);
  return text + (beats ? fmt::format("; with {} or more, steps and rewires together take less than "
                                     "dense steps\n",
                                     *beats)
                       : "; a dense step takes less in any case\n");
}

std::string to_json(const PatternUpdate& update, double step_seconds,
                    std::optional<double> dense_seconds) {
  const auto beats =
      dense_seconds ? steps_to_beat(update.seconds(), step_seconds, *dense_seconds) : std::nullopt;
  Json json{{"rewires", update.rewires}};
  json.update(transfers_of(update));
  json.update({{"dense_gradient_cycles", update.gradient.value},
               {"selection_cycles", update.selection.value},
               {"searches", update.searches},
               {"machine_seconds", update.machine_seconds},
               {"steps_for_5_percent", steps_until_rare(update, step_seconds)},
               {"steps_to_beat_dense", beats}});
  return json.dump();
}

PatternUpdate new_patterns(const runtime::Network& network, const device::HostLink& link,
                           double host_seconds) {
  PatternUpdate update{.upload = network.pattern_bytes() + network.state_bytes(),
                       .download = network.value_bytes() + network.state_bytes(),
                       .host_seconds = host_seconds};
  time_transfers(link, update);
  return update;
}

std::string new_patterns_text(const PatternUpdate& update, double step_seconds,
                              const device::HostLink& link, const std::string& machine) {
  return fmt::format(
      "patterns   new ones for all layers: {} bytes to {} ({:.3f} ms) and {} from\n"
      "           there ({:.3f} ms) at {:.3g} GB/s, {:.3f} ms on this computer (measured);\n"
      "           they cost less than {:.0f} % of the time with {} steps or more from\n"
      "           one to the next\n",
      update.upload.value, machine, 1e3 * update.upload_seconds, update.download.value,
      1e3 * update.download_seconds, link.bytes_per_second * 1e-9, 1e3 * update.host_seconds,
      100 * kShareOfRewires, steps_until_rare(update, step_seconds));
}

std::string new_patterns_json(const PatternUpdate& update, double step_seconds) {
  Json json = transfers_of(update);
  json["steps_for_5_percent"] = steps_until_rare(update, step_seconds);
  return json.dump();
}

}  // namespace tessera::train
