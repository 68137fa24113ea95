#include <hmc/ctrl_socket_manager.h>
#include <unistd.h>

#include <optional>
#include <sstream>

#include "caller.h"
#include "process.h"

namespace hmc::test {

namespace {

constexpr uint32_t kFirstRank = 0, kSecondRank = 1, kFurtherRank = 2;

Status statusOf(const CtrlResult& result) {
  return result ? Status() : lastStatus();
}

struct Message {
  char text[1000];
};

// Over tcp or a unix socket. Timeouts are those of the environment, which are the test's.
class CtrlCaller : public Caller {
 public:
  explicit CtrlCaller(const Circumstances& circumstances)
      : lease_(circumstances.lease),
        host_(circumstances.host),
        path_("/tmp/hmc_ctrl_caller_" + std::to_string(getpid())),
        local_(circumstances.transport == "ipc"),
        self_(circumstances.first ? kFirstRank : kSecondRank),
        peer_(circumstances.first ? kSecondRank : kFirstRank) {
    manager_.emplace();
    while (!manager_->start(host_, port_ = freePort(), path_))
      if (lastStatus().code() != Code::alreadyExists) throw std::runtime_error(lastError());
  }

  std::string introduction() const override {
    return host_ + " " + std::to_string(port_) + " " + path_;
  }
  Status meet(const std::string& introduction) override {
    std::istringstream(introduction) >> ip_ >> peerPort_ >> peerPath_;
    return connect(*manager_, self_);
  }
  std::vector<Call> calls() override;
  std::chrono::milliseconds ends() const override { return 2 * lease_; }

 private:
  Status connect(CtrlSocketManager& manager, uint32_t self) const {
    return statusOf(local_ ? manager.connectUds(peer_, peerPath_, self)
                           : manager.connectTcp(peer_, ip_, peerPort_, self));
  }
  Status connectFurther() {
    further_.emplace();
    return connect(*further_, kFurtherRank + self_);
  }
  Status dial() {
    dialling_.emplace();
    return dialling_->getCtrlSockFd(ip_, peerPort_) > 0 ? Status() : lastStatus();
  }
  Status receive() {
    CtrlMsgHeader header{};
    std::vector<uint8_t> payload;
    return statusOf(manager_->recv(peer_, header, payload));
  }

  const std::chrono::milliseconds lease_;
  const std::string host_, path_;
  const bool local_;
  const uint32_t self_, peer_;
  uint16_t port_ = 0;
  std::optional<CtrlSocketManager> manager_;
  std::string ip_, peerPath_;  // the other one's
  uint16_t peerPort_ = 0;
  // Of one thread each.
  std::optional<CtrlSocketManager> further_, dialling_;
};

std::vector<Call> CtrlCaller::calls() {
  using T = Timeout;
  constexpr std::chrono::milliseconds kAtOnce{0};
  // They take each other's messages, which may be of another size.
  constexpr bool kPerhaps = false, kNever = false;
  CtrlSocketManager& all = *manager_;
  return {
      // Finds the connection, or makes it again.
      {"connect", [this](T) { return connect(*manager_, self_); }},
      {"connectFurther", [this](T) { return connectFurther(); }, kAtOnce, true,
       [this] { further_.reset(); }},
      {"getCtrlSockFd", [this](T) { return dial(); }, kAtOnce, true, [this] { dialling_.reset(); }},
      {"send",
       [&, this](T) {
         const std::string text(50000, 's');
         return statusOf(all.send(peer_, CTRL_STRUCT, text.data(), text.size()));
       }},
      {"sendInt", [&, this](T) { return statusOf(all.sendInt(peer_, 1)); }},
      {"sendU64", [&, this](T) { return statusOf(all.sendU64(peer_, 1)); }},
      {"sendStruct", [&, this](T) { return statusOf(all.sendStruct(peer_, Message{})); }},
      {"recv", [this](T) { return receive(); }},
      {"recvInt",
       [&, this](T) {
         int value = 0;
         return statusOf(all.recvInt(peer_, value));
       },
       kAtOnce, kPerhaps},
      {"recvU64",
       [&, this](T) {
         uint64_t value = 0;
         return statusOf(all.recvU64(peer_, value));
       },
       kAtOnce, kPerhaps},
      {"recvStruct",
       [&, this](T) {
         Message message{};
         return statusOf(all.recvStruct(peer_, message));
       },
       kAtOnce, kPerhaps},
      {"recvNobody",
       [&](T) {
         int value = 0;
         return statusOf(all.recvInt(99, value));
       },
       kAtOnce, kNever},
      {"recvCtrlNobody",
       [&](T) {
         int value = 0;
         return statusOf(all.recvCtrlInt("127.9.9.9", value));
       },
       kAtOnce, kNever},
  };
}

}  // namespace

std::unique_ptr<Caller> makeCtrlCaller(const Circumstances& circumstances) {
  return std::make_unique<CtrlCaller>(circumstances);
}

}  // namespace hmc::test
