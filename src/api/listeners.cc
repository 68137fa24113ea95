#include "api/listeners.h"

#include <sys/stat.h>

#include <cstdlib>

#include "base/error.h"

namespace hmc {

namespace {
uint16_t portOf(const std::string& bound) {
  return static_cast<uint16_t>(std::atoi(bound.c_str() + bound.rfind(':') + 1));
}
}  // namespace

std::string tcpAddress(const std::string& ip, uint16_t port) {
  bool bare6 = ip.find(':') != std::string::npos && ip.front() != '[';
  return bare6 ? fmt::format("tcp://[{}]:{}", ip, port) : fmt::format("tcp://{}:{}", ip, port);
}

std::string udsPath(const std::string& dir, uint32_t rank) {
  return fmt::format("{}/hmc_ctrl_rank_{}.sock", dir, rank);
}

std::string unixAddress(const std::string& path, uint32_t rank) {
  struct stat info {};
  bool directory = stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  return "unix://" + (directory ? udsPath(path, rank) : path);
}

std::vector<Listeners::Wanted> controlListeners(const std::string& ip, uint16_t port,
                                                const std::string& path) {
  std::vector<Listeners::Wanted> listeners;
  if (port != 0) listeners.push_back({tcpAddress(ip, port), "control"});
  if (!path.empty()) listeners.push_back({"unix://" + path, "control"});
  return listeners;
}

Status Listeners::open(const std::vector<Wanted>& wanted) {
  std::vector<std::string> opened;
  std::lock_guard lock(mutex_);
  for (const auto& listener : wanted) {
    if (open_.count(listener.address) > 0) continue;
    auto bound = node_->listen(listener.address, listener.label);
    if (!bound.ok()) {
      for (const auto& address : opened) {
        node_->closeListener(open_[address]);
        open_.erase(address);
      }
      return bound.status();
    }
    open_[listener.address] = *bound;
    opened.push_back(listener.address);
  }
  return Status();
}

Result<uint16_t> Listeners::openAnyPort(const std::string& ip) {
  const std::string any = tcpAddress(ip, 0);
  std::lock_guard lock(mutex_);
  if (open_.count(any) == 0) {
    HMC_ASSIGN(const std::string bound, node_->listen(any, "data"));
    open_[any] = bound;
    open_[tcpAddress(ip, portOf(bound))] = bound;  // so that naming the port finds it open
  }
  return portOf(open_[any]);
}

void Listeners::closeAll() {
  std::map<std::string, std::string> closing;
  {
    std::lock_guard lock(mutex_);
    closing.swap(open_);
  }
  for (const auto& [wanted, bound] : closing) node_->closeListener(bound);
  for (const auto& peer : node_->peers()) {
    if (!peer->channel().initiator()) {
      peer->close(error(Code::disconnected, "the server {} was closed", node_->name()));
    }
  }
}

bool Listeners::any() const {
  std::lock_guard lock(mutex_);
  return !open_.empty();
}

uint16_t Listeners::firstTcpPort() const {
  std::lock_guard lock(mutex_);
  for (const auto& [wanted, bound] : open_) {
    if (bound.rfind("tcp://", 0) == 0) return portOf(bound);
  }
  return 0;
}

}  // namespace hmc
