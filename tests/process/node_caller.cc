#include <hmc/node.h>

#include <optional>

#include "caller.h"

namespace hmc::test {

namespace {

constexpr size_t kMemory = size_t{4} << 20;
// What is in front of it is for atomic changes. Here, each call that writes has memory of its own.
constexpr size_t kRemote = 4096;
enum Here : size_t { kPut, kGet = kMemory, kCancel = 2 * kMemory, kLocal = 3 * kMemory };

NodeOptions optionsOf(const Circumstances& circumstances) {
  NodeOptions options;
  options.transports = {circumstances.transport};
  options.lease = circumstances.lease;
  options.heartbeat = circumstances.lease / 8;
  return options;
}

std::string hex(const std::string& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string unhex(const std::string& text) {
  std::string bytes;
  for (size_t at = 0; at + 1 < text.size(); at += 2)
    bytes += static_cast<char>(std::stoi(text.substr(at, 2), nullptr, 16));
  return bytes;
}

// A Node and its handles.
class NodeCaller : public Caller {
 public:
  explicit NodeCaller(const Circumstances& circumstances)
      : lease_(circumstances.lease),
        node_(Node::create(optionsOf(circumstances)).value()),
        memory_(node_.allocate("memory", kRemote + kMemory).value()),
        local_(node_.allocate("local", kLocal).value()),
        introduction_(node_.listen("tcp://" + circumstances.host + ":0").value() + " " +
                      hex(memory_.grant().value().bytes())),
        lent_(node_.allocate("lent", kMemory).value()) {}
  ~NodeCaller() override { node_.close(); }

  std::string introduction() const override { return introduction_; }
  Status meet(const std::string& introduction) override;
  std::vector<Call> calls() override;
  std::chrono::milliseconds ends() const override { return 2 * lease_; }

 private:
  Status put(Timeout timeout) { return remote_->put(local_, kPut, kRemote, kMemory, timeout); }
  Status list(Timeout timeout);
  Status cancel();
  Status revoke(Timeout timeout);
  Status openLent(Timeout timeout);
  Status revokeGrant(Timeout timeout);

  const std::chrono::milliseconds lease_;
  Node node_;
  const LocalRegion memory_;  // what the other one moves bytes to and from
  LocalRegion local_;
  const std::string introduction_;
  std::string address_;  // the other one's
  std::optional<hmc::Peer> peer_;
  std::optional<Grant> grant_;
  std::optional<RemoteRegion> remote_;
  // Of one thread each.
  std::optional<LocalRegion> lent_;
  std::optional<RemoteRegion> opened_;
};

Status NodeCaller::meet(const std::string& introduction) {
  const size_t space = introduction.find(' ');
  address_ = introduction.substr(0, space);
  grant_ = Grant::fromBytes(unhex(introduction.substr(space + 1))).value();
  auto met = node_.connect(address_);
  if (!met.ok()) return met.status();
  peer_ = *met;
  auto found = peer_->open("memory");
  if (!found.ok()) return found.status();
  remote_ = *found;
  return put(kDefaultTimeout);
}

// A list, whose wait leaves it on its way.
Status NodeCaller::list(Timeout timeout) {
  std::vector<Block> blocks;
  for (size_t at = 0; at < kMemory; at += 40000) blocks.push_back({kPut + at, kRemote + at, 20000});
  auto ticket = remote_->startPut(local_, blocks);
  if (!ticket.ok()) return ticket.status();
  const Status waited = ticket->wait(timeout);
  return waited.code() == Code::deadlineExceeded ? ticket->cancel() : waited;
}

Status NodeCaller::cancel() {
  auto ticket = remote_->startGet(local_, std::vector<Block>{{kCancel, kRemote, kMemory}});
  return ticket.ok() ? ticket->cancel() : ticket.status();
}

// The other one has it open as often as not.
Status NodeCaller::revoke(Timeout timeout) {
  const Status revoked = lent_->revoke(timeout);
  if (auto again = node_.allocate("lent", kMemory); again.ok()) lent_ = *again;
  return revoked;
}

Status NodeCaller::openLent(Timeout timeout) {
  auto opened = peer_->open("lent", timeout);
  if (opened.ok()) opened_ = *opened;
  return opened.status();
}

Status NodeCaller::revokeGrant(Timeout timeout) {
  auto grant = local_.grant();
  return grant.ok() ? local_.revoke(*grant, timeout) : grant.status();
}

// All but close(), which ends the others.
std::vector<Call> NodeCaller::calls() {
  using T = Timeout;
  constexpr std::chrono::milliseconds kAtOnce{0};
  constexpr bool kNever = false;
  // A transfer that is cut off is first fenced: by the peer's answer, or after twice the lease.
  const auto fence = 2 * lease_;
  return {
      {"connect", [this](T t) { return node_.connect(address_, t).status(); }},
      {"connectOnce", [this](T t) { return node_.connectOnce(address_, t).status(); }},
      {"peer", [this](T t) { return node_.peer("nobody", t).status(); }, kAtOnce, kNever},
      {"nextNote", [this](T t) { return node_.nextNote(t).status(); }},
      {"nextCall", [this](T t) { return node_.nextCall(t).status(); }},
      {"nextPeerEvent", [this](T t) { return node_.nextPeerEvent(t).status(); }, kAtOnce, kNever},
      {"open", [this](T t) { return peer_->open("memory", t).status(); }},
      {"openGrant", [this](T t) { return peer_->open(*grant_, t).status(); }},
      {"openLent", [this](T t) { return openLent(t); }},
      {"regions", [this](T t) { return peer_->regions(t).status(); }},
      {"describe", [this](T t) { return peer_->describe("memory", t).status(); }},
      {"probe", [this](T t) { return peer_->probe(t).status(); }},
      {"notify", [this](T t) { return peer_->notify(std::string(50000, 'n'), t); }},
      {"call", [this](T t) { return peer_->call("nothing", "", t).status(); }, kAtOnce, kNever},
      {"put", [this](T t) { return put(t); }, fence},
      {"get", [this](T t) { return remote_->get(local_, kGet, kRemote, kMemory, t); }, fence},
      {"list", [this](T t) { return list(t); }, fence},
      {"cancel", [this](T) { return cancel(); }, fence, kNever},
      {"fetchAdd", [this](T t) { return remote_->fetchAdd(0, 1, t).status(); }},
      {"compareSwap", [this](T t) { return remote_->compareSwap(8, 0, 0, t).status(); }},
      {"revoke", [this](T t) { return revoke(t); }},
      {"revokeGrant", [this](T t) { return revokeGrant(t); }},
  };
}

}  // namespace

std::unique_ptr<Caller> makeNodeCaller(const Circumstances& circumstances) {
  return std::make_unique<NodeCaller>(circumstances);
}

}  // namespace hmc::test
