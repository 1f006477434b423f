// The only source that knows MPI.

#include "tessera/distributed/mpi_ranks.hpp"

#include <algorithm>
#include <cstdlib>

#ifdef TESSERA_HAS_MPI
#define OMPI_SKIP_MPICXX 1  // the interface of C is all that is used
#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>
#endif

namespace tessera::distributed {

int ranks_of_this_computer() {
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"})
    if (const char* text = std::getenv(name)) return std::max(std::atoi(text), 1);
  return 1;
}

#ifndef TESSERA_HAS_MPI

int run_mpi_rank(const std::function<int(Communicator&)>&, const std::function<int()>&,
                 std::chrono::milliseconds) {
  throw_invalid(
      "this program was built without MPI; build it with -DTESSERA_MPI=ON, or start it "
      "without a launcher");
}

#else

namespace {

using Clock = std::chrono::steady_clock;

void require(int code, std::string_view what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(ErrorCode::Internal,
              fmt::format("{}: MPI says: {}", what, std::string_view(text, std::size_t(length))));
}

// MPI counts in int, so larger pieces travel in parts of this size.
constexpr std::size_t kLargestPart = std::size_t{1} << 30;

// A request, with the rank at its other end and the bytes that it should move.
struct Request {
  MPI_Request handle = MPI_REQUEST_NULL;
  int other = 0;
  std::size_t bytes = 0;
};

// Waits by asking: MPI has no wait that ends. A rank that may have a core of its own asks without a
// pause at first; then it lets others run between questions, and after a while it sleeps, so that
// waiting for a rank which stands still costs no core.
class Patience {
 public:
  explicit Patience(std::chrono::microseconds busy) : busy_(busy) {}

  void rest() {
    constexpr auto kYields = std::chrono::milliseconds(20);
    const auto waited = Clock::now() - begin_;
    if (waited < busy_) return;
    if (waited < kYields)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  bool is_over(std::chrono::milliseconds timeout) const { return Clock::now() - begin_ > timeout; }
  void begin_again() { begin_ = Clock::now(); }

 private:
  std::chrono::microseconds busy_;
  Clock::time_point begin_ = Clock::now();
};

// Returns how long a rank waits without a pause: not at all if there are more ranks on this
// computer than cores.
std::chrono::microseconds busy_time() {
  MPI_Comm neighbours = MPI_COMM_NULL;
  require(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &neighbours),
          "the ranks of this computer");
  int count = 1;
  MPI_Comm_size(neighbours, &count);
  MPI_Comm_free(&neighbours);
  return std::chrono::microseconds(count > ::sysconf(_SC_NPROCESSORS_ONLN) ? 0 : 200);
}

class MpiTransfer : public internal::Pending {
 public:
  MpiTransfer(internal::Waiting waiting, std::chrono::microseconds busy)
      : waiting_(waiting), busy_(busy) {}

  void send(const SendPiece& piece) { start(MPI_Isend, piece.bytes, piece.to, sends_); }
  void receive(const ReceivePiece& piece) { start(MPI_Irecv, piece.bytes, piece.from, receives_); }

  void wait_received() override { wait_for(receives_, /*receives=*/true); }
  void wait_sent() override { wait_for(sends_, /*receives=*/false); }

 private:
  template <class Call, class Byte>
  void start(Call call, std::span<Byte> bytes, int other, std::vector<Request>& requests) {
    for (std::size_t at = 0; at < bytes.size(); at += kLargestPart) {
      const auto part = bytes.subspan(at, std::min(kLargestPart, bytes.size() - at));
      Request& request = requests.emplace_back(Request{MPI_REQUEST_NULL, other, part.size()});
      require(
          call(part.data(), int(part.size()), MPI_BYTE, other, 0, MPI_COMM_WORLD, &request.handle),
          waiting_.what);
    }
  }

  // Completed requests are removed; each one that completes restarts the timeout.
  void wait_for(std::vector<Request>& requests, bool receives) {
    Patience patience(busy_);
    while (!requests.empty()) {
      const std::size_t before = requests.size();
      std::erase_if(requests, [&](Request& r) { return is_complete(r, receives); });
      if (requests.size() < before)
        patience.begin_again();
      else if (patience.is_over(waiting_.timeout))
        throw StandsStill(internal::still_text(waiting_, requests.front().other, receives));
      else
        patience.rest();
    }
  }

  bool is_complete(Request& request, bool receives) {
    int flag = 0;
    MPI_Status status;
    const int code = MPI_Test(&request.handle, &flag, &status);
    if (code != MPI_SUCCESS)
      require(code, fmt::format("rank {} of {}: {}: {} rank {}", waiting_.rank, waiting_.size,
                                waiting_.what, receives ? "receiving from" : "sending to",
                                request.other));
    if (flag != 0 && receives) check_size(request, status);
    return flag != 0;
  }

  // MPI reports a piece that is too long as an error, and one that is too short not at all.
  void check_size(const Request& request, MPI_Status& status) {
    int bytes = 0;
    require(MPI_Get_count(&status, MPI_BYTE, &bytes), waiting_.what);
    if (std::size_t(bytes) != request.bytes)
      throw Error(ErrorCode::Internal,
                  internal::size_text(waiting_, request.other, request.bytes, std::size_t(bytes)));
  }

  internal::Waiting waiting_;
  std::chrono::microseconds busy_;
  std::vector<Request> sends_, receives_;
};

// Returns a number of all ranks that `ask` asks MPI for.
template <class Ask>
int asked(Ask ask, std::string_view what) {
  int number = 0;
  require(ask(MPI_COMM_WORLD, &number), what);
  return number;
}

class MpiCommunicator : public Communicator {
 public:
  explicit MpiCommunicator(std::chrono::milliseconds timeout)
      : Communicator(asked(MPI_Comm_rank, "the number of this rank"),
                     asked(MPI_Comm_size, "the number of ranks"), timeout) {}

  void abort(int exit_code, const std::string&) noexcept override {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    std::_Exit(exit_code);  // in case that returns
  }

 protected:
  std::unique_ptr<internal::Pending> begin(std::string_view what, std::span<const SendPiece> sends,
                                           std::span<const ReceivePiece> receives) override {
    auto transfer =
        std::make_unique<MpiTransfer>(internal::Waiting{what, rank(), size(), timeout()}, busy_);
    for (const ReceivePiece& piece : receives) transfer->receive(piece);
    for (const SendPiece& piece : sends) transfer->send(piece);
    return transfer;
  }

 private:
  std::chrono::microseconds busy_ = busy_time();
};

}  // namespace

int run_mpi_rank(const std::function<int(Communicator&)>& body, const std::function<int()>& failed,
                 std::chrono::milliseconds timeout) {
  int level = MPI_THREAD_SINGLE;
  require(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level), "starting MPI");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MpiCommunicator ranks(timeout);
  try {
    const int code = body(ranks);
    // MPI_Finalize waits without an end for a rank that stands still.
    ranks.barrier("end of the job");
    MPI_Finalize();
    return code;
  } catch (...) {
    const int code = failed();
    ranks.abort(code != 0 ? code : 1, {});
  }
  return 1;
}

#endif

}  // namespace tessera::distributed
