#include "every_call.h"

namespace hmc::test {

namespace {

constexpr size_t kMemory = size_t{4} << 20;
// What is in front of it is for atomic changes. Here, each call that writes has memory of its own.
constexpr size_t kRemote = 4096;
enum Here : size_t { kPut, kGet = kMemory, kCancel = 2 * kMemory, kLocal = 3 * kMemory };

NodeOptions optionsOf(const std::string& transport, std::chrono::milliseconds lease) {
  NodeOptions options;
  options.transports = {transport};
  options.lease = lease;
  options.heartbeat = lease / 8;
  options.secret = "of the matrix";
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

Status put(Caller& caller, Timeout timeout) {
  return caller.remote->put(caller.local, kPut, kRemote, kMemory, timeout);
}

Status get(Caller& caller, Timeout timeout) {
  return caller.remote->get(caller.local, kGet, kRemote, kMemory, timeout);
}

// A list, whose wait leaves it on its way.
Status list(Caller& caller, Timeout timeout) {
  std::vector<Block> blocks;
  for (size_t at = 0; at < kMemory; at += 40000) blocks.push_back({kPut + at, kRemote + at, 20000});
  auto ticket = caller.remote->startPut(caller.local, blocks);
  if (!ticket.ok()) return ticket.status();
  const Status waited = ticket->wait(timeout);
  return waited.code() == Code::deadlineExceeded ? ticket->cancel() : waited;
}

Status cancel(Caller& caller, Timeout) {
  auto ticket =
      caller.remote->startGet(caller.local, std::vector<Block>{{kCancel, kRemote, kMemory}});
  return ticket.ok() ? ticket->cancel() : ticket.status();
}

// The other one has it open as often as not.
Status revoke(Caller& caller, Timeout timeout) {
  const Status revoked = caller.lent->revoke(timeout);
  if (auto again = caller.node.allocate("lent", kMemory); again.ok()) caller.lent = *again;
  return revoked;
}

Status openLent(Caller& caller, Timeout timeout) {
  auto opened = caller.peer->open("lent", timeout);
  if (opened.ok()) caller.opened = *opened;
  return opened.status();
}

Status revokeGrant(Caller& caller, Timeout timeout) {
  auto grant = caller.local.grant();
  return grant.ok() ? caller.local.revoke(*grant, timeout) : grant.status();
}

}  // namespace

Caller::Caller(const std::string& transport, std::chrono::milliseconds lease,
               const std::string& host)
    : node(Node::create(optionsOf(transport, lease)).value()),
      memory(node.allocate("memory", kRemote + kMemory).value()),
      local(node.allocate("local", kLocal).value()),
      lent(node.allocate("lent", kMemory).value()) {
  introduction_ =
      node.listen("tcp://" + host + ":0").value() + " " + hex(memory.grant().value().bytes());
}

Status Caller::meet(const std::string& introduction) {
  const size_t space = introduction.find(' ');
  address = introduction.substr(0, space);
  grant = Grant::fromBytes(unhex(introduction.substr(space + 1))).value();
  auto met = node.connect(address);
  if (!met.ok()) return met.status();
  peer = *met;
  auto found = peer->open("memory");
  if (!found.ok()) return found.status();
  remote = *found;
  return put(*this, kDefaultTimeout);
}

const std::vector<EveryCall>& everyCall() {
  using C = Caller;
  using T = Timeout;
  constexpr Ends kDeadline = Ends::atDeadline, kFence = Ends::atFence;
  static const std::vector<EveryCall> all{
      {"connect", kDeadline, [](C& c, T t) { return c.node.connect(c.address, t).status(); }},
      {"connectOnce", kDeadline,
       [](C& c, T t) { return c.node.connectOnce(c.address, t).status(); }},
      {"peer", kDeadline, [](C& c, T t) { return c.node.peer("nobody", t).status(); }},
      {"nextNote", kDeadline, [](C& c, T t) { return c.node.nextNote(t).status(); }},
      {"nextCall", kDeadline, [](C& c, T t) { return c.node.nextCall(t).status(); }},
      {"nextPeerEvent", kDeadline, [](C& c, T t) { return c.node.nextPeerEvent(t).status(); }},
      {"open", kDeadline, [](C& c, T t) { return c.peer->open("memory", t).status(); }},
      {"openGrant", kDeadline, [](C& c, T t) { return c.peer->open(*c.grant, t).status(); }},
      {"openLent", kDeadline, openLent},
      {"regions", kDeadline, [](C& c, T t) { return c.peer->regions(t).status(); }},
      {"describe", kDeadline, [](C& c, T t) { return c.peer->describe("memory", t).status(); }},
      {"probe", kDeadline, [](C& c, T t) { return c.peer->probe(t).status(); }},
      {"notify", kDeadline, [](C& c, T t) { return c.peer->notify(std::string(50000, 'n'), t); }},
      {"call", kDeadline, [](C& c, T t) { return c.peer->call("nothing", "", t).status(); }},
      {"put", kFence, put},
      {"get", kFence, get},
      {"list", kFence, list},
      {"cancel", kFence, cancel},
      {"fetchAdd", kDeadline, [](C& c, T t) { return c.remote->fetchAdd(0, 1, t).status(); }},
      {"compareSwap", kDeadline,
       [](C& c, T t) { return c.remote->compareSwap(8, 0, 0, t).status(); }},
      {"revoke", kDeadline, revoke},
      {"revokeGrant", kDeadline, revokeGrant},
  };
  return all;
}

}  // namespace hmc::test
