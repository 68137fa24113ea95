#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "api/settings.h"
#include "node/node_impl.h"

namespace hmc {

// The listeners that a documented class opened, and how it dials others'. Safe from any thread.
class Listeners {
 public:
  explicit Listeners(std::shared_ptr<NodeImpl> node) : node_(std::move(node)) {}

  // A listener that is open already stays, with its label. When
  // one of several cannot be opened, those that this call opened are closed again.
  struct Wanted {
    std::string address;
    std::string label;
  };
  Status open(const std::vector<Wanted>& wanted);
  // At a port that the system picks, one for each ip.
  Result<uint16_t> openAnyPort(const std::string& ip);
  // Closes every listener, and the conversations that came through them.
  void closeAll();
  bool any() const;
  uint16_t firstTcpPort() const;

 private:
  const std::shared_ptr<NodeImpl> node_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> open_;  // guarded by mutex_: bound address by wanted address
};

// The control listeners of the documented calls: port 0 means no TCP, an empty path no unix socket.
std::vector<Listeners::Wanted> controlListeners(const std::string& ip, uint16_t port,
                                                const std::string& path);

std::string tcpAddress(const std::string& ip, uint16_t port);
// A directory stands for the socket of that rank in it.
std::string unixAddress(const std::string& path, uint32_t rank);
std::string udsPath(const std::string& dir, uint32_t rank);

}  // namespace hmc
