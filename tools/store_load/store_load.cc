#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/fd.h"
#include "store_load/give_up.h"
#include "store_load/grpc_connection.h"
#include "store_load/own_connection.h"

// store_load ours|etcd ADDRESS|PORT CONNECTIONS SECONDS: how long a request of 256 bytes takes on
// average, in nanoseconds, "set ... get ...". Every connection has one request under way; one
// thread drives them all. etcd is asked by gRPC. `hmc bench pool` starts it.

namespace hmc::store {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kValueBytes = 256;
constexpr int kPatienceMs = 60000;

void allowDescriptors() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Nanoseconds for each request.
template <class Connection>
double measure(std::vector<Connection>& connections, int epoll, double seconds) {
  const auto begin = Clock::now();
  const auto end = begin + std::chrono::duration<double>(seconds);
  for (Connection& one : connections) one.send();
  size_t requests = 0;
  size_t open = connections.size();
  std::vector<epoll_event> events(256);
  while (open > 0) {
    const int ready =
        epoll_wait(epoll, events.data(), static_cast<int>(events.size()), kPatienceMs);
    if (ready <= 0) giveUp("no answer came for a minute");
    const bool over = Clock::now() >= end;
    for (int i = 0; i < ready; ++i) {
      Connection& one = connections[events[static_cast<size_t>(i)].data.u64];
      if (one.receive() == 0) continue;
      ++requests;
      if (over) {
        --open;
      } else {
        one.send();
      }
    }
  }
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count() /
         static_cast<double>(requests);
}

template <class Connection, class Address>
void measureAll(const Address& address, size_t count, double seconds) {
  const Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  std::vector<Connection> connections(count);
  const auto key = [](size_t i) { return "load/" + std::to_string(i); };
  for (size_t i = 0; i < count; ++i) {
    connections[i].dial(address);
    connections[i].prepareSet(key(i), std::string(kValueBytes, 'v'));
    epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
    if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, connections[i].fd(), &event) != 0)
      giveUp("epoll_ctl failed");
  }
  const double set = measure(connections, epoll.get(), seconds);
  for (size_t i = 0; i < count; ++i) connections[i].prepareGet(key(i));
  const double get = measure(connections, epoll.get(), seconds);
  std::printf("set %.1f get %.1f\n", set, get);
}

}  // namespace
}  // namespace hmc::store

int main(int argc, char** argv) {
  using namespace hmc::store;
  const std::string kind = argc == 5 ? argv[1] : "";
  const size_t connections = argc == 5 ? std::strtoul(argv[3], nullptr, 10) : 0;
  const double seconds = argc == 5 ? std::strtod(argv[4], nullptr) : 0;
  if ((kind != "ours" && kind != "etcd") || connections == 0 || seconds <= 0) {
    std::fprintf(stderr, "store_load ours|etcd ADDRESS|PORT CONNECTIONS SECONDS\n");
    return 2;
  }
  allowDescriptors();
  if (kind == "ours") {
    measureAll<OwnConnection>(std::string(argv[2]), connections, seconds);
  } else {
    measureAll<GrpcConnection>(std::atoi(argv[2]), connections, seconds);
  }
  return 0;
}
