#include <thread>

#include "bench/against/competitors.h"
#include "bench/raw_socket.h"
#include "bench/report/units.h"
#include "bench/timing.h"

namespace hmc::bench {

namespace {

constexpr std::chrono::milliseconds kTime{30};  // per measurement

// Answers in a thread of its own for as long as it lives.
class Answering {
 public:
  explicit Answering(RawSocketServer server)
      : server_(std::move(server)), thread_([this] { server_.serve(); }) {}
  ~Answering() { server_.stop(); }

  uint16_t port() const { return server_.port(); }

 private:
  const RawSocketServer server_;
  std::jthread thread_;
};

Result<Samples> exchanges(RawSocket& socket, size_t request, size_t reply) {
  TOOL_TRY(socket.prepare(request, reply));
  auto once = [&] { return socket.exchange(); };
  TOOL_ASSIGN(size_t count, calibrate(once));
  Samples samples;
  TOOL_TRY(slice(once, count, kTime, samples));
  return samples;
}

}  // namespace

Status runSocket(const Workload& workload, Progress& progress, Comparison& found) {
  progress.expect(2 * workload.sizes.size());
  TOOL_ASSIGN(RawSocketServer server, RawSocketServer::listen("127.0.0.1"));
  Answering answering(std::move(server));
  TOOL_ASSIGN(RawSocket socket, RawSocket::connect("127.0.0.1", answering.port()));
  for (size_t bytes : workload.sizes) {
    progress.next("raw socket, " + sizeText(bytes));
    TOOL_ASSIGN(Samples echo, exchanges(socket, bytes, bytes));
    Measurement about{.who = "raw socket", .what = "echo", .path = "loopback", .bytes = bytes};
    found.addLatency(about, median(echo), percentiles(echo));

    progress.next("raw socket, " + sizeText(bytes) + ", confirmed");
    TOOL_ASSIGN(Samples confirmed, exchanges(socket, bytes, 1));
    about.what = "send, confirmed";
    found.addBandwidth(about, median(confirmed));
  }
  return Status();
}

}  // namespace hmc::bench
