#include "collective/group_impl.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/thread.h"
#include "collective/operation.h"

namespace hmc::collective {

namespace {

constexpr const char* kRegion = "collective";
constexpr uint32_t kMostSpins = 2000;  // some tens of microseconds
constexpr uint32_t kLeastSpins = 32;

std::string nodeName(const std::string& group, uint32_t rank) {
  return fmt::format("{}/{}", group, rank);
}

uint32_t cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? static_cast<uint32_t>(CPU_COUNT(&set)) : 1;
}

}  // namespace

Result<std::unique_ptr<GroupImpl>> GroupImpl::begin(const CollectiveOptions& options) {
  if (options.rank >= options.size) {
    return error(Code::invalidArgument, "rank is {} and size is {}: ranks are 0 to size - 1",
                 options.rank, options.size);
  }
  NodeOptions nodeOptions = options.node;
  nodeOptions.name = nodeName(options.name, options.rank);
  HMC_ASSIGN(auto node, Node::create(nodeOptions));
  const auto shape = Inbox::Shape::of(options.size, options.memory);
  HMC_ASSIGN(auto memory, node.allocate(kRegion, shape.bytes()));
  HMC_ASSIGN(auto outbox, node.allocate("", shape.slot()));
  std::string address;
  if (options.size > 1) {
    HMC_ASSIGN(address, node.listen(options.listen));
  }
  return std::unique_ptr<GroupImpl>(new GroupImpl(
      options, std::move(node), shape, std::move(memory), std::move(outbox), std::move(address)));
}

GroupImpl::GroupImpl(CollectiveOptions options, Node node, Inbox::Shape shape, LocalRegion memory,
                     LocalRegion outbox, std::string address)
    : options_(std::move(options)),
      node_(std::move(node)),
      shape_(shape),
      memory_(std::move(memory)),
      outbox_(std::move(outbox)),
      inbox_(memory_.data(), shape_, options_.rank),
      address_(std::move(address)),
      channels_(options_.size),
      connected_(options_.size == 1) {}

GroupImpl::~GroupImpl() {
  node_.close();  // ends the listener, too
  if (listener_.joinable()) listener_.join();
}

std::string GroupImpl::path(uint32_t rank) const {
  return rank < size() && channels_[rank] ? channels_[rank]->path() : "";
}

Status GroupImpl::status(uint32_t rank) const {
  return rank < size() && channels_[rank] ? channels_[rank]->peer().status() : Status();
}

Status GroupImpl::connect(const std::vector<std::string>& addresses, Deadline deadline) {
  const std::lock_guard turn(turn_);
  if (addresses.size() != size()) {
    return error(Code::invalidArgument, "{} addresses for a group of {} ranks", addresses.size(),
                 size());
  }
  if (connected_) return Status();
  uint32_t mapped = 0;
  for (uint32_t rank = 0; rank < size(); ++rank) {
    if (rank == this->rank()) continue;
    if (!channels_[rank]) {
      const Status reached = reach(rank, addresses[rank], deadline);
      if (!reached.ok() && deadline.passed()) {
        return error(Code::deadlineExceeded, "rank {} of {} did not connect in time: {}", rank,
                     size(), reached.message());
      }
      if (!reached.ok()) return reached.within(fmt::format("connect to rank {}", rank));
    }
    mapped += channels_[rank]->mapped() ? 1 : 0;
  }
  mostSpins_ = mapped + 1 <= cores() ? kMostSpins : 0;
  spins_ = mostSpins_;
  HMC_ASSIGN(listener_, startThread("hmc-collective", [this] { hear(); }));
  connected_ = true;
  return Status();
}

// Of two ranks the higher one dials.
Status GroupImpl::reach(uint32_t rank, const std::string& address, Deadline deadline) {
  auto connected = rank < this->rank() ? node_.connect(address, deadline.left())
                                       : node_.peer(nodeName(options_.name, rank), deadline.left());
  if (!connected.ok()) return connected.status();
  HMC_ASSIGN(auto theirs, connected->open(kRegion, deadline.left()));
  if (theirs.size() != shape_.bytes()) {
    return error(Code::invalidArgument,
                 "it has set aside {} bytes for a group of other size, and we {}: give all ranks "
                 "the same size and memory",
                 theirs.size(), shape_.bytes());
  }
  channels_[rank] = std::make_unique<Channel>(*connected, std::move(theirs), outbox_, inbox_,
                                              shape_, rank, this->rank());
  byPeer_[connected->id()] = channels_[rank].get();
  return Status();
}

// On a busy machine the others wait for their turn, and looking takes it from them.
void GroupImpl::slept(std::chrono::nanoseconds time) {
  constexpr std::chrono::microseconds kShort{50};  // about as long as kMostSpins
  spins_ = time < kShort ? std::min(spins_ * 2, mostSpins_)
                         : std::max(spins_ / 2, std::min(kLeastSpins, mostSpins_));
}

void GroupImpl::hear() {
  while (true) {
    const auto note = node_.nextNote(std::chrono::hours(1));
    if (!note.ok()) {
      if (note.status().code() == Code::deadlineExceeded) continue;
      return;
    }
    const auto from = byPeer_.find(note->from.id());
    if (from != byPeer_.end()) from->second->heard(note->bytes);
  }
}

Status GroupImpl::start(Operation& operation) {
  if (!broken_.ok()) return broken_;
  if (!connected_) {
    return error(Code::invalidArgument, "a {} before connect(): connect the ranks first",
                 operation.name());
  }
  operation.begin(++operations_);
  return Status();
}

// The pieces of an operation that failed would be taken for those of the next one.
Status GroupImpl::finish(const Operation& operation, Status outcome) {
  if (outcome.ok()) return outcome;
  broken_ = outcome;
  for (const auto& channel : channels_) {
    if (channel) channel->blame(operation.blamed().value_or(rank()));
  }
  return outcome;
}

}  // namespace hmc::collective
