#include "unit/node/mutating_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "unit/node/divert_data.h"

namespace hmc::test {

namespace {

sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

Fd listening(uint16_t& port) {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof(address);
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(fd.get(), 64) != 0)
    return Fd();
  getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
  port = ntohs(address.sin_port);
  return fd;
}

// Both ends are read all the time, so that waiting here cannot last.
bool sendAll(int fd, const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = send(fd, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (count <= 0) return false;
    done += static_cast<size_t>(count);
  }
  return true;
}

}  // namespace

MutatingProxy::MutatingProxy(uint16_t acceptor, const Mutation& mutation)
    : mutation_(mutation),
      random_(mutation.seed),
      control_(listening(port_)),
      data_(listening(dataPort_)),
      controlTarget_(acceptor),
      wake_(*EventFd::create("the proxy")),
      thread_([this] { serve(); }) {}

MutatingProxy::~MutatingProxy() {
  stopped_ = true;
  wake_.signal();
  thread_.join();
}

void MutatingProxy::serve() {
  while (!stopped_) {
    std::vector<pollfd> waiting{
        {wake_.get(), POLLIN, 0}, {control_.get(), POLLIN, 0}, {data_.get(), POLLIN, 0}};
    for (const Connection& connection : connections_) {
      for (const Fd& end : connection.ends) waiting.push_back({end.get(), POLLIN, 0});
    }
    if (poll(waiting.data(), waiting.size(), -1) < 0) continue;
    auto ready = waiting.begin() + 3;
    for (Connection& connection : connections_) {
      for (size_t end = 0; end < 2; ++end, ++ready) {
        if (ready->revents != 0 && !connection.over) pass(connection, end);
      }
    }
    connections_.remove_if([](const Connection& connection) { return connection.over; });
    if (waiting[1].revents != 0) accept(control_, controlTarget_);
    if (waiting[2].revents != 0) accept(data_, dataTarget_);
  }
}

void MutatingProxy::accept(const Fd& listener, uint16_t target) {
  Fd dialler(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  Fd acceptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(target);
  if (connect(acceptor.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return;
  Connection& connection = connections_.emplace_back();
  connection.number = accepted_++;
  connection.ends[0] = std::move(dialler);
  connection.ends[1] = std::move(acceptor);
}

void MutatingProxy::pass(Connection& connection, size_t from) {
  std::string bytes(16384, '\0');
  const ssize_t count = recv(connection.ends[from].get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (count < 0 && errno == EAGAIN) return;
  connection.over = count <= 0;
  if (connection.over) return;
  bytes.resize(static_cast<size_t>(count));
  if (connection.number == 0 && from == 1) {
    divertData(bytes, [this](uint16_t theirs) {
      dataTarget_ = theirs;
      return dataPort_;
    });
  }
  const size_t before = connection.passed[from];
  connection.passed[from] += bytes.size();
  const bool here = mutation_.connection == connection.number &&
                    mutation_.toAcceptor == (from == 0) &&
                    connection.passed[from] > mutation_.after;
  if (here && mutation_.kind != Kind::none && !mutated_.exchange(true))
    mutate(bytes, mutation_.after - std::min(before, mutation_.after), connection);
  if (!connection.over && !sendAll(connection.ends[1 - from].get(), bytes)) connection.over = true;
}

void MutatingProxy::mutate(std::string& bytes, size_t at, Connection& connection) {
  const size_t size = std::min<size_t>(1 + random_() % 32, bytes.size() - at);
  const std::string piece = bytes.substr(at, size);
  switch (mutation_.kind) {
    case Kind::flip:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random_() % 8));
      break;
    case Kind::cut:
      connection.over = true;
      break;
    case Kind::insert: {
      std::string noise(size, '\0');
      for (char& byte : noise) byte = static_cast<char>(random_());
      bytes.insert(at, noise);
      break;
    }
    case Kind::drop:
      bytes.erase(at, size);
      break;
    case Kind::swap:
      std::rotate(bytes.begin() + static_cast<ptrdiff_t>(at),
                  bytes.begin() + static_cast<ptrdiff_t>(at + size), bytes.end());
      break;
    case Kind::repeat:
      bytes.insert(at, piece);
      break;
    case Kind::none:
      break;
  }
}

}  // namespace hmc::test
