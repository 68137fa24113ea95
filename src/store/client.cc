#include "store/client.h"

#include <utility>

#include "base/error.h"
#include "store/state.h"

// The calls of a client; client_upkeep.cc has its leases and watches.

namespace hmc::store {

using Repeat = Connection::Repeat;

Result<std::shared_ptr<Client>> Client::open(const std::string& address,
                                             const StoreOptions& options, Deadline deadline) {
  std::shared_ptr<Client> client(new Client(options));
  HMC_ASSIGN(client->connection_, Connection::open(address, options, *client, deadline));
  return client;
}

Result<std::string> Client::get(std::string_view key, Deadline deadline) {
  HMC_TRY(checkKey(key));
  return connection_->call({.op = Op::get, .key = std::string(key)}, Repeat::yes, deadline);
}

Result<std::string> Client::await(std::string_view key, Deadline deadline) {
  HMC_TRY(checkKey(key));
  const uint64_t id = ++lastId_;
  auto value = connection_->call({.op = Op::await, .id = id, .key = std::string(key)}, Repeat::yes,
                                 deadline);
  if (value.status().code() != Code::deadlineExceeded) return value;
  const ChannelPtr channel = connection_->channel();
  if (!channel) return value;
  channel->ask(static_cast<uint16_t>(Op::forget), encode({.op = Op::forget, .id = id}),
               [](const auto&) {});
  return error(Code::deadlineExceeded, "nobody set the key {} before the deadline", key);
}

Result<std::vector<Entry>> Client::list(std::string_view prefix, Deadline deadline) {
  HMC_TRY(checkPrefix(prefix));
  for (;;) {
    bool again = false;
    auto entries = listOnce(prefix, deadline, again);
    if (entries.ok() || !again) return entries;
  }
}

// `again` is set when the server does not have the rest of the list any more.
Result<std::vector<Entry>> Client::listOnce(std::string_view prefix, Deadline deadline,
                                            bool& again) {
  Request request{.op = Op::list, .key = std::string(prefix)};
  std::vector<Entry> entries;
  do {
    const bool first = request.op == Op::list;
    auto answer = connection_->call(request, first ? Repeat::yes : Repeat::no, deadline);
    const Code code = answer.status().code();
    again = !first && (code == Code::notFound || code == Code::disconnected);
    if (!answer.ok()) return answer.status();
    HMC_ASSIGN(Page page, decodePage(*answer));
    for (Entry& entry : page.entries) entries.push_back(std::move(entry));
    request = {.op = Op::more, .id = page.cursor};
  } while (request.id != 0);
  return entries;
}

Status Client::set(std::string_view key, std::string_view value, Deadline deadline,
                   const std::shared_ptr<KeyLease>& lease) {
  HMC_TRY(checkKey(key));
  HMC_TRY(checkValue(value));
  HMC_ASSIGN(const LeasePtr held, known(lease));
  const uint64_t made = held ? held->made() : 0;
  const Request request{.op = Op::set, .key = std::string(key), .value = std::string(value)};
  HMC_TRY(callWith(held, request, Repeat::yes, deadline).status());
  record(held, key, value, made);
  return Status();
}

Result<Swap> Client::compareAndSet(std::string_view key, std::optional<std::string_view> expected,
                                   std::optional<std::string_view> desired, Deadline deadline,
                                   const std::shared_ptr<KeyLease>& lease) {
  HMC_TRY(checkKey(key));
  HMC_TRY(checkValue(expected.value_or("")));
  HMC_TRY(checkValue(desired.value_or("")));
  HMC_ASSIGN(const LeasePtr held, known(lease));
  const uint64_t made = held ? held->made() : 0;
  Request request{.op = Op::compareAndSet, .key = std::string(key)};
  if (expected) request.expected = *expected;
  if (desired) request.value = *desired;
  HMC_ASSIGN(const std::string answer, callWith(held, request, Repeat::no, deadline));
  HMC_ASSIGN(Swap swap, decodeSwap(answer));
  if (swap.done) record(desired ? held : nullptr, key, desired.value_or(""), made);
  return swap;
}

Result<int64_t> Client::add(std::string_view key, int64_t amount, Deadline deadline) {
  HMC_TRY(checkKey(key));
  const Request request{.op = Op::add, .key = std::string(key), .amount = amount};
  HMC_ASSIGN(const std::string answer, connection_->call(request, Repeat::no, deadline));
  HMC_ASSIGN(const uint64_t sum, decodeNumber(answer));
  return static_cast<int64_t>(sum);
}

Result<uint64_t> Client::append(std::string_view key, std::string_view bytes, Deadline deadline) {
  HMC_TRY(checkKey(key));
  HMC_TRY(checkValue(bytes));
  const Request request{.op = Op::append, .key = std::string(key), .value = std::string(bytes)};
  HMC_ASSIGN(const std::string answer, connection_->call(request, Repeat::no, deadline));
  return decodeNumber(answer);
}

Status Client::remove(std::string_view key, Deadline deadline) {
  HMC_TRY(checkKey(key));
  // First, so that a lease that is restored meanwhile does not bring it back.
  for (const LeasePtr& lease : leases()) lease->forget(key);
  return connection_->call({.op = Op::remove, .key = std::string(key)}, Repeat::yes, deadline)
      .status();
}

Status Client::removeAll(std::string_view prefix, Deadline deadline) {
  HMC_TRY(checkPrefix(prefix));
  for (const LeasePtr& lease : leases()) lease->forgetAll(prefix);
  return connection_->call({.op = Op::removeAll, .key = std::string(prefix)}, Repeat::yes, deadline)
      .status();
}

Result<std::string> Client::callWith(const LeasePtr& lease, const Request& request, Repeat repeat,
                                     Deadline deadline) {
  Request sent = request;
  sent.leases = {lease ? lease->id() : State::kNoLease};
  for (;;) {
    if (lease && lease->revoked()) return lease->status();
    auto answer = connection_->call(sent, repeat, deadline);
    // The one thing that such a request does not find is its lease.
    if (!lease || answer.status().code() != Code::notFound) return answer;
    lease->setLost();
    connection_->wake();
    HMC_TRY(lease->waitRestored(deadline));
  }
}

void Client::record(const LeasePtr& lease, std::string_view key, std::string_view value,
                    uint64_t made) {
  for (const LeasePtr& other : leases()) {
    if (other != lease) other->forget(key);
  }
  if (lease && lease->record(key, value, made)) connection_->wake();
}

std::vector<Client::LeasePtr> Client::leases() const {
  std::lock_guard lock(mutex_);
  std::vector<LeasePtr> all;
  all.reserve(leases_.size());
  for (const auto& [handle, lease] : leases_) all.push_back(lease);
  return all;
}

Result<Client::LeasePtr> Client::known(const std::shared_ptr<KeyLease>& lease) const {
  if (!lease) return LeasePtr();
  std::lock_guard lock(mutex_);
  const auto found = leases_.find(lease.get());
  if (found != leases_.end()) return found->second;
  return error(Code::invalidArgument, "the lease is not one of this store, or was revoked");
}

}  // namespace hmc::store
