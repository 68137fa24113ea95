#include <hmc.h>

#include <optional>
#include <sstream>

#include "caller.h"

namespace hmc::test {

namespace {

constexpr size_t kMemory = size_t{1} << 20;
constexpr size_t kSent = size_t{64} << 10;
// In both buffers: what is put and what is fetched, and a place for each call that writes, so that
// no two touch the same bytes.
enum Place : size_t {
  kSource,
  kPut = kMemory,
  kPutNB = 2 * kMemory,
  kPutPipeline = 3 * kMemory,
  kGet = 4 * kMemory,
  kGetNB = 5 * kMemory,
  kGetPipeline = 6 * kMemory,
  kBuffer = 7 * kMemory
};
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
        sent_(kSent),
        received_(kSent) {
    communicator_.emplace(std::make_shared<ConnBuffer>(0, kBuffer, MemoryType::CPU));
    bulk_.emplace(std::make_shared<ConnBuffer>(0, kMemory, MemoryType::CPU));
    if (communicator_->initServer(host_, &port_) != status_t::SUCCESS ||
        bulk_->initServer(host_, &bulkPort_) != status_t::SUCCESS)
      throw std::runtime_error(lastError());
  }

  std::string introduction() const override {
    return host_ + " " + std::to_string(port_) + " " + std::to_string(bulkPort_);
  }
  Status meet(const std::string& introduction) override {
    std::istringstream(introduction) >> ip_ >> peerPort_ >> peerBulkPort_;
    const Status met = connect(*communicator_, self_, std::chrono::seconds(30));
    return met.ok() ? connectBulk(std::chrono::seconds(30)) : met;
  }
  std::vector<Call> calls() override;
  std::chrono::milliseconds ends() const override { return 4 * lease_; }

 private:
  Status connect(Communicator& communicator, uint32_t self, uint16_t port, Timeout timeout) const {
    Communicator::CtrlLink link;
    link.ip = ip_;
    link.port = port;
    return statusOf(communicator.connectTo(peer_, self, ip_, port, link, type_, rounded(timeout)));
  }
  Status connect(Communicator& communicator, uint32_t self, Timeout timeout) const {
    return connect(communicator, self, peerPort_, timeout);
  }
  Status connectBulk(Timeout timeout) { return connect(*bulk_, self_, peerBulkPort_, timeout); }
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
    for (size_t half = 0; half < ids.size(); ++half) {
      constexpr size_t kHalf = kMemory / 2;
      const size_t from = kSource + half * kHalf;
      const size_t to = (put ? kPutNB : kGetNB) + half * kHalf;
      uint64_t* const id = &ids[half];
      const status_t begun = put ? communicator_->putNB(ip_, peerPort_, from, to, kHalf, id, type_)
                                 : communicator_->getNB(ip_, peerPort_, to, from, kHalf, id, type_);
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
    return statusOf(bulk_->recvDataFrom(ip_, peerBulkPort_, received_.data(), kSent,
                                        MemoryType::CPU, &size, type_));
  }

  const ConnType type_;
  const std::chrono::milliseconds lease_;
  const std::string host_;
  const uint32_t self_, peer_;
  std::vector<char> sent_, received_;
  std::optional<Communicator> communicator_;
  std::optional<Communicator> bulk_;  // of sendDataTo and recvDataFrom, which take the whole buffer
  uint16_t port_ = 0, bulkPort_ = 0;
  std::string ip_;  // the other one's
  uint16_t peerPort_ = 0, peerBulkPort_ = 0;
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
      {"connectBulk", [this](T t) { return connectBulk(t); }},
      {"connectFurther", [this](T t) { return connectFurther(connecting_, 0, t); }, kAtOnce, true,
       [this] { connecting_.reset(); }},
      {"disConnect", [this](T t) { return disconnect(t); }, kAtOnce, true,
       [this] { disconnecting_.reset(); }},
      {"put",
       [&, this](T) { return statusOf(all.put(ip_, peerPort_, kSource, kPut, kMemory, type_)); },
       fence},
      {"get",
       [&, this](T) { return statusOf(all.get(ip_, peerPort_, kGet, kSource, kMemory, type_)); },
       fence},
      {"putNB", [this](T t) { return start(true, t); }},
      {"getNB", [this](T t) { return start(false, t); }},
      {"putPipeline",
       [&, this](T) {
         return statusOf(
             all.putPipeline(ip_, peerPort_, kSource, kPutPipeline, kMemory, 100000, 8, type_));
       },
       fence},
      {"getPipeline",
       [&, this](T) {
         return statusOf(
             all.getPipeline(ip_, peerPort_, kGetPipeline, kSource, kMemory, 100000, 8, type_));
       },
       fence},
      {"sendDataTo",
       [this](T) {
         return statusOf(
             bulk_->sendDataTo(ip_, peerBulkPort_, sent_.data(), kSent, MemoryType::CPU, type_));
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
