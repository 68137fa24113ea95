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

Result<std::string> Client::await(std::string_view key, Deadline deadline,
                                  const std::stop_token& stop) {
  HMC_TRY(checkKey(key));
  const uint64_t id = ++lastId_;
  auto value = connection_->call({.op = Op::await, .id = id, .key = std::string(key)}, Repeat::yes,
                                 deadline, stop);
  const Code code = value.status().code();
  if (code != Code::deadlineExceeded && code != Code::cancelled) return value;
  const ChannelPtr channel = connection_->channel();
  if (!channel) return value;
  channel->ask(static_cast<uint16_t>(Op::forget), encode({.op = Op::forget, .id = id}),
               [](const auto&) {});
  if (code == Code::cancelled) return value;
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

Status Client::put(std::string_view key, std::string_view value, uint64_t lease,
                   Deadline deadline) {
  const Request request{
      .op = Op::set, .key = std::string(key), .value = std::string(value), .leases = {lease}};
  return connection_->call(request, Repeat::yes, deadline).status();
}

Result<Swap> Client::swap(std::string_view key, std::optional<std::string_view> expected,
                          std::optional<std::string_view> desired, uint64_t lease,
                          Deadline deadline) {
  Request request{.op = Op::compareAndSet, .key = std::string(key), .leases = {lease}};
  if (expected) request.expected = *expected;
  if (desired) request.value = *desired;
  HMC_ASSIGN(const std::string answer, connection_->call(request, Repeat::no, deadline));
  return decodeSwap(answer);
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

Status Client::erase(std::string_view key, Deadline deadline) {
  return connection_->call({.op = Op::remove, .key = std::string(key)}, Repeat::yes, deadline)
      .status();
}

Status Client::eraseAll(std::string_view prefix, Deadline deadline) {
  return connection_->call({.op = Op::removeAll, .key = std::string(prefix)}, Repeat::yes, deadline)
      .status();
}

}  // namespace hmc::store
