#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/fd.h"
#include "etcd/etcd_server.h"
#include "grpc_connection.h"
#include "raw_client.h"
#include "store/server.h"

// store_load [CONNECTIONS [SECONDS [VALUE-BYTES]]]: requests per second of one store over loopback,
// and beside it those of an etcd where there is one. Every connection has one request under way;
// one thread drives them all. The server is a process of its own. etcd is asked by gRPC, and writes
// what is set to disk, which ours does not.

namespace hmc::store::test {
namespace {

using Clock = std::chrono::steady_clock;
using hmc::test::must;

struct Load {
  size_t connections = 1000;
  double seconds = 5;
  size_t valueSize = 256;
};

// To a store of ours.
class OwnConnection {
 public:
  void dial(const std::string& address) { stream_ = dialRaw(address); }
  int fd() const { return stream_->fd(); }
  void prepareSet(const std::string& key, const std::string& value) {
    prepare({.op = Op::set, .key = key, .value = value, .leases = {0}});
  }
  void prepareGet(const std::string& key) { prepare({.op = Op::get, .key = key}); }
  void send() {
    if (!writeAll(*stream_, request_, "load", kPatience).ok()) std::abort();
  }
  // How many answers came.
  size_t receive() {
    char bytes[4096];
    const control::Moved moved = stream_->read(bytes, sizeof(bytes));
    if (moved.ended || moved.errnum != 0) std::abort();
    frames_.feed({bytes, moved.bytes});
    size_t answers = 0;
    while (auto frame = must(frames_.next())) {
      if (frame->type == control::FrameType::answer) ++answers;
    }
    return answers;
  }

 private:
  void prepare(const Request& request) {
    request_ = callFrame(1, static_cast<uint16_t>(request.op), encode(request));
  }
  std::unique_ptr<control::ByteStream> stream_;
  control::FrameReader frames_{control::kLargestFrame};
  std::string request_;
};

void allowDescriptors() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// The address of a server in another process, which ends with the pipe's other end.
std::string startServer(int& lifeline) {
  int there[2];
  int back[2];
  if (pipe(there) != 0 || pipe(back) != 0) std::abort();
  if (fork() == 0) {
    close(there[1]);
    auto server = must(Server::start("tcp://127.0.0.1:0", {}));
    const std::string address = server->address();
    if (write(back[1], address.data(), address.size()) < 0) _exit(1);
    close(back[1]);
    char end = 0;
    (void)!read(there[0], &end, 1);
    _exit(0);
  }
  close(there[0]);
  close(back[1]);
  lifeline = there[1];
  char address[256] = {};
  if (read(back[0], address, sizeof(address) - 1) <= 0) std::abort();
  return address;
}

double report(const char* what, const Load& load, std::vector<double>& micros, double seconds) {
  std::sort(micros.begin(), micros.end());
  const auto at = [&](double part) {
    return micros[static_cast<size_t>(part * static_cast<double>(micros.size() - 1))];
  };
  const double rate = static_cast<double>(micros.size()) / seconds;
  fmt::print("{} of {} bytes, {} connections: {:.0f} requests/s, p50 {:.0f} us, p99 {:.0f} us\n",
             what, load.valueSize, load.connections, rate, at(0.5), at(0.99));
  return rate;
}

// Our server's processor time in microseconds for each request.
void reportServer(size_t requests) {
  wait(nullptr);
  rusage used{};
  getrusage(RUSAGE_CHILDREN, &used);
  const auto micros = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  };
  fmt::print("the server's processor time: {:.1f} us for each request\n",
             (micros(used.ru_utime) + micros(used.ru_stime)) / static_cast<double>(requests));
}

template <class Connection>
double measure(const char* what, const Load& load, std::vector<Connection>& connections, int epoll,
               size_t& requests) {
  std::vector<double> micros;
  std::vector<Clock::time_point> sent(connections.size());
  const auto send = [&](size_t i) {
    sent[i] = Clock::now();
    connections[i].send();
  };
  const auto begin = Clock::now();
  const auto end = begin + std::chrono::duration<double>(load.seconds);
  for (size_t i = 0; i < connections.size(); ++i) send(i);
  size_t open = connections.size();
  std::vector<epoll_event> events(256);
  while (open > 0) {
    const int ready = epoll_wait(epoll, events.data(), static_cast<int>(events.size()), 60000);
    if (ready <= 0) std::abort();
    for (int i = 0; i < ready; ++i) {
      const size_t at = events[static_cast<size_t>(i)].data.u64;
      if (connections[at].receive() == 0) continue;
      const auto now = Clock::now();
      micros.push_back(std::chrono::duration<double, std::micro>(now - sent[at]).count());
      if (now < end) {
        send(at);
      } else {
        --open;
      }
    }
  }
  requests += micros.size();
  return report(what, load, micros, std::chrono::duration<double>(Clock::now() - begin).count());
}

struct Rates {
  double set = 0;
  double get = 0;
  size_t requests = 0;
};

template <class Connection, class Address>
Rates measureAll(const char* who, const Load& load, const Address& address) {
  const Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  std::vector<Connection> connections(load.connections);
  const auto key = [](size_t i) { return fmt::format("load/{}", i); };
  for (size_t i = 0; i < connections.size(); ++i) {
    connections[i].dial(address);
    connections[i].prepareSet(key(i), std::string(load.valueSize, 'v'));
    epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
    epoll_ctl(epoll.get(), EPOLL_CTL_ADD, connections[i].fd(), &event);
  }
  Rates rates;
  const std::string set = fmt::format("{}: set", who);
  rates.set = measure(set.c_str(), load, connections, epoll.get(), rates.requests);
  for (size_t i = 0; i < connections.size(); ++i) connections[i].prepareGet(key(i));
  const std::string get = fmt::format("{}: get", who);
  rates.get = measure(get.c_str(), load, connections, epoll.get(), rates.requests);
  return rates;
}

int run(const Load& load) {
  allowDescriptors();
  int lifeline = -1;
  const std::string address = startServer(lifeline);
  const Rates ours = measureAll<OwnConnection>("ours", load, address);
  close(lifeline);
  reportServer(ours.requests);
  if (!hmc::test::EtcdServer::isInstalled()) {
    fmt::print("{}\n", hmc::test::EtcdServer::kMissing);
    return 0;
  }
  const hmc::test::EtcdServer etcd;
  const Rates theirs = measureAll<GrpcConnection>("etcd", load, etcd.port());
  fmt::print("ours / etcd: set {:.1f}, get {:.1f}\n", ours.set / theirs.set, ours.get / theirs.get);
  return 0;
}

}  // namespace
}  // namespace hmc::store::test

int main(int argc, char** argv) {
  hmc::store::test::Load load;
  if (argc > 1) load.connections = std::strtoul(argv[1], nullptr, 10);
  if (argc > 2) load.seconds = std::strtod(argv[2], nullptr);
  if (argc > 3) load.valueSize = std::strtoul(argv[3], nullptr, 10);
  if (load.connections == 0 || load.seconds <= 0) {
    fmt::print(stderr, "store_load [CONNECTIONS [SECONDS [VALUE-BYTES]]]\n");
    return 2;
  }
  return hmc::store::test::run(load);
}
