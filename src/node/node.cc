#include "hmc/node.h"

#include "base/error.h"
#include "memory/backends.h"
#include "memory/device_of.h"
#include "node/node_impl.h"
#include "transfer/completion_list.h"

namespace hmc {

void* LocalRegion::data() const {
  return memory_->region().ptr;
}
size_t LocalRegion::size() const {
  return memory_->region().size;
}
Device LocalRegion::device() const {
  return memory_->region().device;
}
const std::string& LocalRegion::name() const {
  return memory_->name();
}

Status LocalRegion::revoke(Timeout timeout) const {
  HMC_TRY(memory_->node()->checkFork());
  return memory_->revoke(timeout);
}

Result<Grant> LocalRegion::grant(const GrantOptions& options) const {
  HMC_TRY(memory_->node()->checkFork());
  return memory_->grant(options);
}

Status LocalRegion::revoke(const Grant& grant, Timeout timeout) const {
  HMC_TRY(memory_->node()->checkFork());
  return memory_->revoke(grant, timeout);
}

Status Ticket::wait(Timeout timeout) {
  if (!state_) return Status();
  HMC_TRY(mapping_->checkFork());
  Status status = state_->engine().wait(*state_, Deadline(timeout));
  return state_->done() ? mapping_->noteEnd(*state_, status) : status;
}
// What a parent has under way is not the child's to wait for.
bool Ticket::done() {
  return !state_ || !mapping_->checkFork().ok() || state_->engine().test(*state_);
}
bool Ticket::over() const {
  return !state_ || !mapping_->checkFork().ok() || state_->done();
}
Status Ticket::cancel() {
  if (!state_) return Status();
  HMC_TRY(mapping_->checkFork());
  return mapping_->noteEnd(*state_, state_->engine().cancel(*state_));
}
const std::string& Ticket::transport() const {
  // What was done at once went into mapped memory, which small puts take where there is any.
  return state_ ? state_->engine().transport().facts().name : mapping_->transport();
}

std::string Ticket::path() const {
  return mapping_->pathOf(state_.get());
}

Result<CompletionQueue> CompletionQueue::create() {
  HMC_ASSIGN(auto list, CompletionList::create());
  return CompletionQueue(std::move(list));
}
CompletionQueue::CompletionQueue(std::unique_ptr<CompletionList> list) : list_(std::move(list)) {}
// In the child of a fork it is left as it is: see ownedHere().
CompletionQueue::~CompletionQueue() {
  if (list_ && list_->inChild()) (void)list_.release();
}
CompletionQueue::CompletionQueue(CompletionQueue&&) noexcept = default;
CompletionQueue& CompletionQueue::operator=(CompletionQueue&&) noexcept = default;

int CompletionQueue::fd() const {
  return list_->fd();
}
Status CompletionQueue::watch(const Ticket& ticket, uint64_t id) {
  if (list_->inChild()) return ForkGuard::refusal();
  return list_->watch(ticket.state_, id);
}
std::vector<uint64_t> CompletionQueue::take() {
  return list_->inChild() ? std::vector<uint64_t>() : list_->take();
}

size_t RemoteRegion::size() const {
  return mapping_->size();
}
Device RemoteRegion::device() const {
  return mapping_->device();
}
Access RemoteRegion::access() const {
  return mapping_->access();
}
const std::string& RemoteRegion::transport() const {
  return mapping_->transport();
}
std::string RemoteRegion::path() const {
  return mapping_->path();
}

bool RemoteRegion::mapped() const {
  return mapping_->mapped();
}
void* RemoteRegion::data() const {
  return mapping_->data();
}

bool RemoteRegion::waitsForNobody(const LocalRegion& local, void* stream) const {
  return mapping_->waitsForNobody(*local.memory_, stream);
}

Status RemoteRegion::put(const LocalRegion& local, size_t localOffset, size_t remoteOffset,
                         size_t size, Timeout timeout) const {
  return mapping_->run(OpKind::put, *local.memory_, localOffset, remoteOffset, size, timeout);
}

Status RemoteRegion::get(const LocalRegion& local, size_t localOffset, size_t remoteOffset,
                         size_t size, Timeout timeout) const {
  return mapping_->run(OpKind::get, *local.memory_, localOffset, remoteOffset, size, timeout);
}

bool RemoteRegion::putAtOnce(const LocalRegion& local, size_t localOffset, size_t remoteOffset,
                             size_t size) const {
  return mapping_->copyAtOnce(OpKind::put, *local.memory_, localOffset, remoteOffset, size);
}

bool RemoteRegion::getAtOnce(const LocalRegion& local, size_t localOffset, size_t remoteOffset,
                             size_t size) const {
  return mapping_->copyAtOnce(OpKind::get, *local.memory_, localOffset, remoteOffset, size);
}

bool RemoteRegion::putAtOnce(const void* local, size_t remoteOffset, size_t size) const {
  auto* from = const_cast<char*>(static_cast<const char*>(local));  // a put only reads it
  return mapping_->copyAtOnce(OpKind::put, from, remoteOffset, size);
}

bool RemoteRegion::getAtOnce(void* local, size_t remoteOffset, size_t size) const {
  return mapping_->copyAtOnce(OpKind::get, static_cast<char*>(local), remoteOffset, size);
}

Result<uint64_t> RemoteRegion::fetchAdd(size_t remoteOffset, uint64_t value,
                                        Timeout timeout) const {
  return mapping_->changeAtomically({AtomicChange::Kind::add, remoteOffset, value}, timeout);
}

Result<uint64_t> RemoteRegion::compareSwap(size_t remoteOffset, uint64_t expected, uint64_t desired,
                                           Timeout timeout) const {
  return mapping_->changeAtomically(
      {AtomicChange::Kind::compareSwap, remoteOffset, desired, expected}, timeout);
}

Result<Ticket> RemoteRegion::startPut(const LocalRegion& local, const std::vector<Block>& blocks,
                                      const StreamOrder& order) const {
  return RemoteMapping::start(mapping_, OpKind::put, local.memory_, blocks, order);
}

Result<Ticket> RemoteRegion::startGet(const LocalRegion& local, const std::vector<Block>& blocks,
                                      const StreamOrder& order) const {
  return RemoteMapping::start(mapping_, OpKind::get, local.memory_, blocks, order);
}

Result<Ticket> RemoteRegion::startPut(const LocalRegion& local, const Strided& shape,
                                      const StreamOrder& order) const {
  return RemoteMapping::start(mapping_, OpKind::put, local.memory_, shape, order);
}

Result<Ticket> RemoteRegion::startGet(const LocalRegion& local, const Strided& shape,
                                      const StreamOrder& order) const {
  return RemoteMapping::start(mapping_, OpKind::get, local.memory_, shape, order);
}

const std::string& Peer::name() const {
  return state_->channel().peer().name;
}
const std::string& Peer::id() const {
  return state_->channel().peer().id;
}
Status Peer::status() const {
  HMC_TRY(node_->checkFork());
  return state_->channel().status();
}
bool Peer::proven() const {
  return state_->channel().proven();
}
void Peer::close() {
  if (!node_->checkFork().ok()) return;
  state_->close(error(Code::disconnected, "the connection was closed here"));
}

Result<RemoteRegion> Peer::open(const std::string& name, Timeout timeout) const {
  HMC_ASSIGN(auto mapping, node_->open(state_, name, {}, Deadline(timeout)));
  return RemoteRegion(std::move(mapping));
}

Result<RemoteRegion> Peer::open(const Grant& grant, Timeout timeout) const {
  HMC_ASSIGN(auto mapping, node_->open(state_, grant, {}, Deadline(timeout)));
  return RemoteRegion(std::move(mapping));
}

Result<std::vector<RegionInfo>> Peer::regions(Timeout timeout) const {
  HMC_TRY(node_->checkFork());
  return node_->regionsOf(*state_, Deadline(timeout));
}

Result<RegionInfo> Peer::describe(const std::string& name, Timeout timeout) const {
  HMC_TRY(node_->checkFork());
  return node_->regionOf(*state_, name, Deadline(timeout));
}

Status Peer::notify(const std::string& bytes, Timeout timeout) const {
  HMC_TRY(node_->checkFork());
  Deadline deadline(timeout);
  HMC_TRY(state_->flush(deadline));
  return state_->channel().send(MessageKind::note, 0, bytes, deadline);
}

Result<std::string> Peer::call(const std::string& name, const std::string& bytes,
                               Timeout timeout) const {
  HMC_TRY(node_->checkFork());
  auto answer = state_->channel().call(kUserCall, encodeUserCall(name, bytes), Deadline(timeout));
  if (answer.ok()) return answer;
  return answer.status().within(fmt::format("the call \"{}\" to {}", name, state_->title()));
}

const std::string& Call::name() const {
  return call_->name();
}
const std::string& Call::bytes() const {
  return call_->bytes();
}
Status Call::answer(const std::string& bytes) const {
  return call_->answer(bytes);
}
Status Call::refuse(const std::string& why) const {
  return call_->answer(Status(Code::failed, why));
}

std::vector<PathReport> Peer::explain() const {
  if (!node_->checkFork().ok()) return {};
  return node_->explain(*state_);
}
std::vector<PathReport> Peer::explain(Device local, size_t size) const {
  if (!node_->checkFork().ok()) return {};
  return node_->explain(*state_, local, size);
}
Result<PeerFacts> Peer::probe(Timeout timeout) const {
  HMC_TRY(node_->checkFork());
  return node_->probe(*state_, Deadline(timeout));
}

Result<Node> Node::create(const NodeOptions& options) {
  HMC_ASSIGN(auto impl, NodeImpl::create(options));
  return Node(std::move(impl));
}

Node::~Node() {
  if (impl_) impl_->close();
}
Node::Node(Node&&) noexcept = default;
Node& Node::operator=(Node&& other) noexcept {
  if (this != &other) {
    if (impl_) impl_->close();
    impl_ = std::move(other.impl_);
  }
  return *this;
}

void Node::close() {
  impl_->close();
}

const std::string& Node::name() const {
  return impl_->name();
}

std::vector<PathReport> Node::transports() const {
  return impl_->transports();
}

std::vector<TransportCounts> Node::counters() const {
  return impl_->counters();
}

Result<std::string> Node::listen(const std::string& address) {
  HMC_ASSIGN(const std::string bound, impl_->listen(address));
  return impl_->advertised(bound);
}

Result<LocalRegion> Node::registerMemory(const std::string& name, void* data, size_t size,
                                         Access access, std::shared_ptr<const void> owner,
                                         const ArrayType& type) {
  HMC_ASSIGN(Device device, deviceOf(data));
  return registerMemory(name, data, size, device, access, std::move(owner), type);
}

Result<LocalRegion> Node::registerMemory(const std::string& name, void* data, size_t size,
                                         Device device, Access access,
                                         std::shared_ptr<const void> owner, const ArrayType& type) {
  HMC_ASSIGN(auto memory, impl_->registerMemory(name, {data, size, device}, access,
                                                /*owned=*/false, std::move(owner), type));
  return LocalRegion(std::move(memory));
}

Result<LocalRegion> Node::allocate(const std::string& name, size_t size, Device device,
                                   Access access, const ArrayType& type) {
  HMC_TRY(impl_->checkFork());
  HMC_TRY(checkType(type));
  HMC_ASSIGN(Backend * backend, findBackend(device));
  HMC_ASSIGN(Region region, backend->allocate(device.index, size));
  HMC_ASSIGN(auto memory, impl_->registerMemory(name, region, access, /*owned=*/true, {}, type));
  return LocalRegion(std::move(memory));
}

Result<Peer> Node::connect(const std::string& address, Timeout timeout) {
  HMC_ASSIGN(auto state, impl_->connectPatiently(address, {}, Deadline(timeout)));
  return Peer(impl_, std::move(state));
}

Result<Peer> Node::connectOnce(const std::string& address, Timeout timeout) {
  HMC_ASSIGN(auto state, impl_->connect(address, {}, Deadline(timeout)));
  return Peer(impl_, std::move(state));
}

Result<Peer> Node::peer(const std::string& name, Timeout timeout) {
  auto byName = [&](const PeerState& peer) { return peer.channel().peer().name == name; };
  HMC_ASSIGN(auto state, impl_->waitForPeer(byName, "peer \"" + name + "\"", Deadline(timeout)));
  return Peer(impl_, std::move(state));
}

std::vector<Peer> Node::peers() const {
  std::vector<Peer> all;
  for (auto& state : impl_->peers()) all.push_back(Peer(impl_, std::move(state)));
  return all;
}

Result<Note> Node::nextNote(Timeout timeout) {
  HMC_ASSIGN(auto note, impl_->nextNote(Deadline(timeout)));
  return Note{Peer(impl_, std::move(note.peer)), std::move(note.bytes)};
}

Result<int> Node::noteFd() {
  return impl_->noteFd();
}

Result<Call> Node::nextCall(Timeout timeout) {
  HMC_ASSIGN(auto call, impl_->nextCall(Deadline(timeout)));
  Peer from(impl_, call->peer());
  return Call(std::move(from), std::move(call));
}

Result<int> Node::callFd() {
  return impl_->callFd();
}

Result<PeerEvent> Node::nextPeerEvent(Timeout timeout) {
  HMC_ASSIGN(auto event, impl_->nextPeerEvent(Deadline(timeout)));
  const auto kind = event.why.ok() ? PeerEvent::Kind::joined : PeerEvent::Kind::left;
  return PeerEvent{Peer(impl_, std::move(event.peer)), kind, std::move(event.why)};
}

Result<int> Node::peerEventFd() {
  return impl_->peerEventFd();
}

}  // namespace hmc
