#include <hmc.h>

#include <optional>
#include <sstream>

#include "caller.h"

namespace hmc::test {

namespace {

constexpr size_t kMemory = size_t{1} << 20;
constexpr size_t kSent = size_t{64} << 10;
constexpr uint32_t kFirstRank = 0, kSecondRank = 1, kFurtherRank = 2;

ConnType typeOf(const std::string& transport) {
  if (transport == "ipc") return ConnType::IPC;
  return transport == "ucx" ? ConnType::UCX : ConnType::TCP;
}

Status statusOf(status_t status) {
  return status == status_t::SUCCESS ? Status() : lastStatus();
}

std::chrono::milliseconds rounded(Timeout timeout) {
  return std::chrono::ceil<std::chrono::milliseconds>(timeout);
}

// Both listen, and each connects to the other. Where a call has no timeout, it is that of the
// environment, which is the test's.
class CommunicatorCaller : public Caller {
 public:
  explicit CommunicatorCaller(const Circumstances& circumstances)
      : type_(typeOf(circumstances.transport)),
        lease_(circumstances.lease),
        host_(circumstances.host),
        self_(circumstances.first ? kFirstRank : kSecondRank),
        peer_(circumstances.first ? kSecondRank : kFirstRank),
        buffer_(std::make_shared<ConnBuffer>(0, kMemory, MemoryType::CPU)),
        sent_(kSent),
        received_(kSent) {
    communicator_.emplace(buffer_);
    if (communicator_->initServer(host_, &port_) != status_t::SUCCESS)
      throw std::runtime_error(lastError());
  }

  std::string introduction() const override { return host_ + " " + std::to_string(port_); }
  Status meet(const std::string& introduction) override {
    std::istringstream(introduction) >> ip_ >> peerPort_;
    return connect(*communicator_, self_, std::chrono::seconds(30));
  }
  std::vector<Call> calls() override;
  std::chrono::milliseconds ends() const override { return 2 * lease_; }

 private:
  Status connect(Communicator& communicator, uint32_t self, Timeout timeout) const {
    Communicator::CtrlLink link;
    link.ip = ip_;
    link.port = peerPort_;
    return statusOf(
        communicator.connectTo(peer_, self, ip_, peerPort_, link, type_, rounded(timeout)));
  }
  // Another one that connects, with a rank of its own.
  Status connectFurther(std::optional<Communicator>& further, uint32_t number, Timeout timeout) {
    further.emplace(std::make_shared<ConnBuffer>(0, size_t{4096}, MemoryType::CPU));
    return connect(*further, kFurtherRank + 2 * number + self_, timeout);
  }
  Status disconnect(Timeout timeout) {
    const Status connected = connectFurther(disconnecting_, 1, timeout);
    if (!connected.ok()) return connected;
    return statusOf(disconnecting_->disConnect(ip_, peerPort_, type_));
  }
  Status start(bool put, Timeout timeout) {
    const Deadline deadline(timeout);
    std::vector<uint64_t> ids(2);
    for (uint64_t& id : ids) {
      const size_t at = id == ids[0] ? 0 : kMemory / 2;
      const status_t begun =
          put ? communicator_->putNB(ip_, peerPort_, at, at, kMemory / 2, &id, type_)
              : communicator_->getNB(ip_, peerPort_, at, at, kMemory / 2, &id, type_);
      if (begun != status_t::SUCCESS) return lastStatus();
    }
    return statusOf(communicator_->wait(ids, rounded(deadline.left())));
  }
  Status receive(Timeout timeout, uint32_t from) {
    uint64_t tag = 0;
    return statusOf(communicator_->ctrlRecv(from, &tag, rounded(timeout)));
  }
  Status receiveData() {
    size_t size = 0;
    return statusOf(communicator_->recvDataFrom(ip_, peerPort_, received_.data(), kSent,
                                                MemoryType::CPU, &size, type_));
  }

  const ConnType type_;
  const std::chrono::milliseconds lease_;
  const std::string host_;
  const uint32_t self_, peer_;
  std::shared_ptr<ConnBuffer> buffer_;
  std::vector<char> sent_, received_;
  std::optional<Communicator> communicator_;
  uint16_t port_ = 0;
  std::string ip_;  // the other one's
  uint16_t peerPort_ = 0;
  // Of one thread each.
  std::optional<Communicator> connecting_, disconnecting_;
};

std::vector<Call> CommunicatorCaller::calls() {
  using T = Timeout;
  constexpr std::chrono::milliseconds kAtOnce{0};
  // A transfer that is cut off is first fenced.
  const auto fence = 2 * lease_;
  Communicator& all = *communicator_;
  return {
      // Finds the connection, or makes it again.
      {"connectTo", [this](T t) { return connect(*communicator_, self_, t); }},
      {"connectFurther", [this](T t) { return connectFurther(connecting_, 0, t); }, kAtOnce, true,
       [this] { connecting_.reset(); }},
      {"disConnect", [this](T t) { return disconnect(t); }, kAtOnce, true,
       [this] { disconnecting_.reset(); }},
      {"put", [&, this](T) { return statusOf(all.put(ip_, peerPort_, 0, 0, kMemory, type_)); },
       fence},
      {"get", [&, this](T) { return statusOf(all.get(ip_, peerPort_, 0, 0, kMemory, type_)); },
       fence},
      {"putNB", [this](T t) { return start(true, t); }},
      {"getNB", [this](T t) { return start(false, t); }},
      {"putPipeline",
       [&, this](T) {
         return statusOf(all.putPipeline(ip_, peerPort_, 0, 0, kMemory, 100000, 8, type_));
       },
       fence},
      {"getPipeline",
       [&, this](T) {
         return statusOf(all.getPipeline(ip_, peerPort_, 0, 0, kMemory, 100000, 8, type_));
       },
       fence},
      {"sendDataTo",
       [&, this](T) {
         return statusOf(
             all.sendDataTo(ip_, peerPort_, sent_.data(), kSent, MemoryType::CPU, type_));
       },
       fence},
      {"recvDataFrom", [this](T) { return receiveData(); }, fence},
      {"ctrlSend", [&, this](T) { return statusOf(all.ctrlSend(peer_, 1)); }},
      {"ctrlRecv", [this](T t) { return receive(t, peer_); }},
      {"ctrlRecvNobody", [this](T t) { return receive(t, 99); }, kAtOnce, false},
      {"writeToNobody", [&, this](T) { return statusOf(all.writeTo("127.9.9.9", 0, 8, type_)); },
       kAtOnce, false},
      {"explain",
       [&, this](T) {
         (void)all.explain(ip_, peerPort_);
         return Status();
       },
       fence},
      {"checkConn", [&, this](T) { return statusOf(all.checkConn(ip_, peerPort_, type_)); }},
  };
}

}  // namespace

std::unique_ptr<Caller> makeCommunicatorCaller(const Circumstances& circumstances) {
  return std::make_unique<CommunicatorCaller>(circumstances);
}

}  // namespace hmc::test
