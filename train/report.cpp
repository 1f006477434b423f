#include "tessera/train/report.hpp"

#include <fmt/format.h>

#include <utility>

#include "tessera/json/value.hpp"

namespace tessera::train {

std::string to_json(const TrainReport& report) {
  using Json = json::Value;
  Json epochs = json::List(), rewires = json::List(), seconds = json::Object();
  for (const EpochFigures& e : report.epochs)
    epochs.push_back({{"epoch", e.epoch},
                      {"loss", e.loss},
                      {"accuracy", e.accuracy},
                      {"test_loss", e.test_loss},
                      {"test_accuracy", e.test_accuracy},
                      {"seconds", e.seconds}});
  for (const RewireFigures& r : report.rewires)
    rewires.push_back({{"step", r.step},
                       {"fraction", r.fraction},
                       {"moved", r.moved},
                       {"ever_active", r.ever_active},
                       {"seconds", r.seconds},
                       {"per_input", r.per_input}});
  for (std::size_t i = 0; i < kActivities; ++i)
    seconds[to_string(Activity(i))] = report.seconds.of[i];
  return Json{{"steps", report.steps},
              {"epochs", std::move(epochs)},
              {"rewires", std::move(rewires)},
              {"seconds", std::move(seconds)}}
      .dump();
}

std::string epoch_text(const TrainReport& report, std::optional<double> density) {
  const EpochFigures& e = report.epochs.back();
  return fmt::format(
      "epoch {:>3}  loss {:.4f}  train {:6.2f} %  test {:6.2f} %  {:7.1f} s  rewires {:>3}  "
      "ever active {:5.1f} %{}\n",
      e.epoch, e.loss, 100 * e.accuracy, 100 * e.test_accuracy, e.seconds,
      report.rewires.size() - 1, 100 * report.rewires.back().ever_active,
      density ? fmt::format("  density {:5.1f} %", 100 * *density) : "");
}

std::string to_csv(const TrainReport& report, const std::string& name) {
  std::string text;
  for (const EpochFigures& e : report.epochs)
    text += fmt::format("{},{},{:.6f},{:.6f},{:.6f},{:.6f},{:.3f}\n", name, e.epoch, e.loss,
                        e.accuracy, e.test_loss, e.test_accuracy, e.seconds);
  return text;
}

std::string csv_heading() { return "run,epoch,loss,accuracy,test_loss,test_accuracy,seconds\n"; }

}  // namespace tessera::train
