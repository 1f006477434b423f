#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

// Targets for fuzzing: one function for each reader and each part of the interface that takes data
// from outside. Each takes any bytes. It throws an exception if the code under test broke a
// promise; a sanitizer reports what it sees itself.
namespace tessera::fuzz {

using Input = std::span<const std::uint8_t>;

// One target; `name` is also that of its folder in corpus/.
struct Target {
  std::string_view name;
  void (*run)(Input);
};

// Returns all targets of this build: those of command lines only with TESSERA_FUZZ_ALL.
std::span<const Target> targets();

// Throws std::logic_error with the text unless the condition holds: a promise that is broken.
void require(bool holds, std::string_view promise);

// Runs code that may refuse its input. Returns false if it threw an Error that blames the caller.
// Every other exception leaves this function, Error{Internal} too. Throws std::logic_error if the
// message of an error is empty or longer than 4096 characters.
bool accepts(const std::function<void()>& code);

// Readers of files. What is read must be a legal matrix, and the same again after it was written.
void read_mtx(Input input);
void read_smtx(Input input);
void read_mask(Input input);
void read_npy(Input input);
void read_npz(Input input);
void read_npz_arrays(Input input);  // an archive is made of arrays that the input describes
void read_safetensors(Input input);

// Saved states, from the bytes of a file or with some of them changed.
void archive(Input input);
void checkpoint(Input input);     // of a training run
void saved_weights(Input input);  // of a layer

// Readers of JSON, cached plans and command lines.
void plan_json(Input input);
void machine_json(Input input);
void pod_json(Input input);
void pod_plan_json(Input input);
void option_json(Input input);
void constraint_json(Input input);
void layer_keys(Input input);
void network_json(Input input);
void cached_plan(Input input);
void command_line(Input input);
void response_file(Input input);

// Buckets and whole layers. Results are compared with plain references.
void bucket_words(Input input);
void round_trip(Input input);
void tile_layer(Input input);
void host_layer(Input input);

// Conversions between storage formats.
void storage_formats(Input input);

}  // namespace tessera::fuzz
