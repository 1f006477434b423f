#include "tessera/train/checkpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/io/array.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/train/internal/option_text.hpp"
#include "tessera/train/machine_layer.hpp"

namespace tessera::train {
namespace {

constexpr std::string_view kSchemaKey = "tessera_checkpoint", kNetworkKey = "network",
                           kTrainingKey = "training";
constexpr std::int64_t kEpochColumns = 6, kRewireColumns = 5, kRunNumbers = 4;

std::string key_of(std::size_t layer, std::string_view part) {
  return fmt::format("layer{}.{}", layer + 1, part);
}

template <class T>
std::vector<std::int64_t> shape_of_list(const std::vector<T>& list) {
  return {std::ssize(list)};
}

void add_report(const TrainState& state, std::vector<io::NamedTensor>& tensors) {
  const TrainReport& report = state.report;
  std::vector<double> epochs, rewires;
  std::vector<std::int32_t> per_input;
  for (const EpochFigures& e : report.epochs)
    for (const double n :
         {double(e.epoch), e.loss, e.accuracy, e.test_loss, e.test_accuracy, e.seconds})
      epochs.push_back(n);
  for (const RewireFigures& r : report.rewires) {
    for (const double n : {double(r.step), r.fraction, double(r.moved), r.ever_active, r.seconds})
      rewires.push_back(n);
    per_input.insert(per_input.end(), r.per_input.begin(), r.per_input.end());
  }
  const auto inputs = std::ssize(report.rewires.front().per_input);
  tensors.push_back(
      io::make_tensor("run",
                      std::vector<double>{double(report.steps), double(state.weights.front().steps),
                                          state.loss_sum, double(state.right)},
                      {kRunNumbers}));
  tensors.push_back(io::make_tensor("epochs", epochs, {std::ssize(report.epochs), kEpochColumns}));
  tensors.push_back(
      io::make_tensor("rewires", rewires, {std::ssize(report.rewires), kRewireColumns}));
  tensors.push_back(io::make_tensor("per_input", per_input, {std::ssize(report.rewires), inputs}));
  tensors.push_back(io::make_tensor(
      "seconds", std::vector<double>(report.seconds.of.begin(), report.seconds.of.end()),
      {std::int64_t(kActivities)}));
}

// Reads the tensors of one file, each of the type and shape that is wanted.
class TensorReader {
 public:
  TensorReader(std::string_view bytes, std::string_view name) : bytes_(bytes), name_(name) {}

  // A side of -1 may have any length.
  io::Array array(const std::string& tensor, io::ElementType type,
                  const std::vector<std::int64_t>& shape) const {
    io::Array read = io::read_safetensors(bytes_, name_, tensor);
    bool fits = read.type == type && read.shape.size() == shape.size();
    for (std::size_t i = 0; fits && i < shape.size(); ++i)
      fits = shape[i] < 0 || shape[i] == read.shape[i];
    if (!fits)
      refuse(
          fmt::format("tensor {} has shape {} or type that this network cannot have; {} was "
                      "expected",
                      tensor, fmt::join(read.shape, " x "), fmt::join(shape, " x ")));
    return read;
  }

  template <class T>
  std::vector<T> list(const std::string& tensor, io::ElementType type, std::int64_t count) const {
    const io::Array read = array(tensor, type, {count});
    std::vector<T> numbers;
    numbers.reserve(read.values.size());
    for (const double n : read.values) numbers.push_back(T(n));
    return numbers;
  }

  // Returns a whole number from 0 on, below 2^53.
  std::int64_t whole(double number, std::string_view what) const {
    if (!(number >= 0 && number < 0x1p53 && number == std::floor(number)))
      refuse(fmt::format("{} is {}; it must be a whole number from 0 on", what, number));
    return std::int64_t(number);
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorCode::BadInput, fmt::format("{}: {}", name_, what));
  }

 private:
  std::string_view bytes_, name_;
};

void check_notes(std::string_view bytes, std::string_view name, const io::TensorNotes& wanted,
                 const TensorReader& reader) {
  const io::TensorNotes notes = io::read_safetensors_notes(bytes, name);
  for (const auto& [key, text] : wanted) {
    const auto found = std::find_if(notes.begin(), notes.end(),
                                    [&](const auto& note) { return note.first == key; });
    if (found == notes.end())
      reader.refuse(
          fmt::format("there is no note {}; this is no checkpoint of a training run", key));
    if (found->second != text)
      reader.refuse(fmt::format("the checkpoint has {} \"{:.200}\"; this run has \"{}\"", key,
                                found->second, text));
  }
}

TrainReport read_report(const TensorReader& reader, std::int64_t inputs, std::int64_t per_epoch,
                        std::int64_t steps) {
  TrainReport report;
  report.steps = steps;
  const io::Array rows = reader.array("epochs", io::ElementType::F64, {-1, kEpochColumns});
  if (rows.shape[0] > steps / per_epoch)
    reader.refuse(fmt::format("it has figures of {} epochs after {} steps", rows.shape[0], steps));
  const std::vector<double>& epochs = rows.values;
  for (std::size_t i = 0; i < epochs.size(); i += kEpochColumns)
    report.epochs.push_back({reader.whole(epochs[i], "an epoch"), epochs[i + 1], epochs[i + 2],
                             epochs[i + 3], epochs[i + 4], epochs[i + 5]});
  const io::Array rewires = reader.array("rewires", io::ElementType::F64, {-1, kRewireColumns});
  if (rewires.shape[0] == 0)
    reader.refuse("tensor rewires has no rows; the first patterns are one");
  const io::Array per_input =
      reader.array("per_input", io::ElementType::I32, {rewires.shape[0], inputs});
  for (std::int64_t i = 0; i < rewires.shape[0]; ++i) {
    const double* const row = rewires.values.data() + i * kRewireColumns;
    const auto first = per_input.values.begin() + i * inputs;
    report.rewires.push_back({reader.whole(row[0], "the step of a rewire"), row[1],
                              reader.whole(row[2], "the blocks of a rewire"), row[3], row[4],
                              std::vector<std::int32_t>(first, first + inputs)});
  }
  const auto seconds = reader.list<double>("seconds", io::ElementType::F64, kActivities);
  std::copy(seconds.begin(), seconds.end(), report.seconds.of.begin());
  return report;
}

sparse::Csr<float> read_pattern(const TensorReader& reader, std::size_t layer,
                                const Problem& problem) {
  const Dims size = problem.size_in_blocks();
  sparse::Csr<float> m{size.x, size.y, problem.block, {}, {}, {}};
  m.row_begin = reader.list<std::int64_t>(key_of(layer, "row_begin"), io::ElementType::I64,
                                          m.block_rows() + 1);
  m.col = reader.list<std::int32_t>(key_of(layer, "col"), io::ElementType::I32, -1);
  m.values = reader.list<float>(key_of(layer, "values"), io::ElementType::F32,
                                std::ssize(m.col) * problem.block.area());
  try {
    sparse::check(m);
  } catch (const Error& error) {
    reader.refuse(fmt::format("layer {}: {}", layer + 1, error.what()));
  }
  return m;
}

ValueState<float> read_state(const TensorReader& reader, std::size_t layer, std::string_view part,
                             std::int64_t states, std::int64_t count, std::int64_t steps) {
  ValueState<float> state{.steps = steps};
  for (std::int64_t i = 0; i < states; ++i)
    state.arrays.push_back(reader.list<float>(key_of(layer, fmt::format("{}{}", part, i + 1)),
                                              io::ElementType::F32, count));
  return state;
}

template <TrainableLayer L>
io::TensorNotes notes_of(const Trainer<L>& trainer) {
  return {{std::string(kSchemaKey), fmt::format("schema {}", kCheckpointSchema)},
          {std::string(kNetworkKey), internal::text_of(trainer.network().options())},
          {std::string(kTrainingKey), internal::text_of(trainer.options())}};
}

}  // namespace

template <class L>
std::string checkpoint_of(const Trainer<L>& trainer) {
  std::vector<io::NamedTensor> tensors;
  const TrainState& state = trainer.state();
  for (std::size_t i = 0; i < state.weights.size(); ++i) {
    const auto add = [&](std::string_view part, const auto& list) {
      tensors.push_back(io::make_tensor(key_of(i, part), list, shape_of_list(list)));
    };
    const auto& weights = trainer.network().weights(std::int64_t(i));
    add("row_begin", weights.row_begin);
    add("col", weights.col);
    add("values", weights.values);
    add("bias", trainer.network().state(std::int64_t(i)).bias);
    for (std::size_t k = 0; k < state.weights[i].arrays.size(); ++k) {
      add(fmt::format("state{}", k + 1), state.weights[i].arrays[k]);
      add(fmt::format("bias_state{}", k + 1), state.biases[i].arrays[k]);
    }
    add("ever_active", state.ever_active[i].bits());
  }
  add_report(state, tensors);
  return io::write_safetensors(tensors, notes_of(trainer));
}

template <class L>
void restore(Trainer<L>& trainer, std::string_view bytes, std::string_view name) {
  const TensorReader reader(bytes, name);
  check_notes(bytes, name, notes_of(trainer), reader);
  Network<L>& network = trainer.network();
  const auto run = reader.list<double>("run", io::ElementType::F64, kRunNumbers);
  const std::int64_t optimiser_steps = reader.whole(run[1], "the steps of the optimiser"),
                     states = states_of(trainer.options().optimiser);
  TrainState state{.loss_sum = run[2], .right = reader.whole(run[3], "the right answers")};
  std::vector<sparse::Csr<float>> weights;
  std::vector<std::vector<float>> biases;
  for (std::size_t i = 0; i < network.problems().size(); ++i) {
    const Problem& problem = network.problems()[i];
    weights.push_back(read_pattern(reader, i, problem));
    biases.push_back(reader.list<float>(key_of(i, "bias"), io::ElementType::F32, problem.size.x));
    state.weights.push_back(
        read_state(reader, i, "state", states, std::ssize(weights.back().values), optimiser_steps));
    state.biases.push_back(
        read_state(reader, i, "bias_state", states, problem.size.x, optimiser_steps));
    EverActive whole(weights.back());
    state.ever_active.emplace_back(
        weights.back().block_rows(), weights.back().block_cols(),
        reader.list<std::uint8_t>(key_of(i, "ever_active"), io::ElementType::U8,
                                  std::ssize(whole.bits())));
    if (state.ever_active.back().count() > whole.places())
      reader.refuse(fmt::format("layer {}: more places were ever stored than there are", i + 1));
  }
  state.report = read_report(reader, network.problems()[0].size.y, trainer.steps_per_epoch(),
                             reader.whole(run[0], "the number of steps"));
  network.replace(network.layers_with(weights));  // nothing below throws
  for (std::size_t i = 0; i < biases.size(); ++i)
    network.state(std::int64_t(i)).bias.swap(biases[i]);
  trainer.set_state(std::move(state));
}

template std::string checkpoint_of(const Trainer<host::HostLayer>&);
template std::string checkpoint_of(const Trainer<MachineLayer>&);
template void restore(Trainer<host::HostLayer>&, std::string_view, std::string_view);
template void restore(Trainer<MachineLayer>&, std::string_view, std::string_view);

}  // namespace tessera::train
