// A member of a pool that does what it is told, a line at a time: "ok ..." or "error CODE
// sentence".

#include <hmc/pool.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>

#include "checksum.h"
#include "fakes/pattern.h"
#include "stop_where_read.h"
#include "store/server.h"
#include "store/store.h"

namespace hmc::test {

namespace {

using std::chrono::seconds;

class PoolPeer {
 public:
  PoolPeer() {
    addMembership();
    addCopies();
  }

  std::string obey(const std::string& line) {
    std::istringstream in(line);
    std::string word;
    in >> word;
    auto found = commands_.find(word);
    if (found == commands_.end()) return "error UNKNOWN " + word;
    if (!pool_ && word != "store" && word != "join" && word != "await")
      return "error NOPOOL join first";
    return found->second(in);
  }

 private:
  using Command = std::function<std::string(std::istream&)>;

  static std::string answer(const Status& status, const std::string& text = "") {
    if (status.ok()) return "ok " + text;
    std::string message = status.message();
    std::replace(message.begin(), message.end(), '\n', '|');
    std::string code = codeName(status.code());
    std::replace(code.begin(), code.end(), ' ', '_');
    return "error " + code + " " + message;
  }

  static PoolSpace readSpace(std::istream& in) {
    std::string word;
    in >> word;
    return word == "device" ? PoolSpace::device : PoolSpace::host;
  }

  // "join STORE key=value ..."
  std::string join(std::istream& in) {
    std::string store;
    PoolOptions options;
    int timeout = 60;
    in >> store;
    for (std::string word; in >> word;) {
      const size_t equals = word.find('=');
      const std::string key = word.substr(0, equals);
      const std::string value = word.substr(equals + 1);
      if (key == "name") options.name = value;
      if (key == "rank") options.rank = static_cast<uint32_t>(std::stoul(value));
      if (key == "capacity") options.capacity = static_cast<uint32_t>(std::stoul(value));
      if (key == "host") options.hostSize = std::stoull(value);
      if (key == "device") options.deviceSize = std::stoull(value);
      if (key == "hostStride") options.hostStride = std::stoull(value);
      if (key == "deviceStride") options.deviceStride = std::stoull(value);
      if (key == "on") (void)parseDevice(value, options.device);
      if (key == "numa") options.numaNode = std::stoi(value);
      if (key == "serve") options.serveStore = true;
      if (key == "secret") options.node.secret = value;
      if (key == "transports") options.node.transports = {value};
      if (key == "lease") options.node.lease = std::chrono::milliseconds(std::stoi(value));
      if (key == "heartbeat") options.node.heartbeat = std::chrono::milliseconds(std::stoi(value));
      if (key == "timeout") timeout = std::stoi(value);
    }
    auto joined = Pool::join(store, options, seconds(timeout));
    if (!joined.ok()) return answer(joined.status());
    pool_.emplace(*std::move(joined));
    heard_.clear();
    confused_ = false;
    return "ok " + std::to_string(pool_->rank());
  }

  std::string event(std::istream& in) {
    int timeout = 60;
    in >> timeout;
    const auto event = pool_->nextEvent(seconds(timeout));
    if (!event.ok()) return answer(event.status());
    hear(*event);
    const bool joined = event->kind == PoolEvent::Kind::joined;
    return std::string("ok ") + (joined ? "joined " : "left ") + std::to_string(event->rank);
  }

  void hear(const PoolEvent& event) {
    reason_ = event.reason;
    const bool joined = event.kind == PoolEvent::Kind::joined;
    if (joined != heard_.insert(event.rank).second) confused_ = true;
    if (!joined) heard_.erase(event.rank);
  }

  // "await-ranks 0 1 3": until these are the members, as events and ranks() tell.
  std::string awaitRanks(std::istream& in) {
    const std::set<uint32_t> wanted(std::istream_iterator<uint32_t>(in), {});
    std::set<uint32_t> others = wanted;
    others.erase(pool_->rank());
    const auto end = std::chrono::steady_clock::now() + seconds(60);
    for (;;) {
      // One that went before it was announced is in ranks() without an event.
      const auto event = pool_->nextEvent(std::chrono::milliseconds(heard_ == others ? 0 : 100));
      if (event.ok()) hear(*event);
      if (event.status().code() == Code::disconnected) return answer(event.status());
      if (confused_) return "error EVENTS a rank joined twice or left twice";
      if (event.ok()) continue;
      const auto ranks = pool_->ranks();
      if (heard_ == others && std::set<uint32_t>(ranks.begin(), ranks.end()) == wanted) return "ok";
      if (std::chrono::steady_clock::now() > end) return "error LATE ranks are " + shown(ranks);
    }
  }

  static std::string shown(const std::vector<uint32_t>& ranks) {
    std::string all;
    for (uint32_t rank : ranks) all += std::to_string(rank) + " ";
    return all;
  }

  // "placement": where our host slot is bound to, and the nodes that its pages are on. Touches it.
  std::string placement() {
    const auto slot = pool_->slot(pool_->rank());
    if (!slot.ok()) return answer(slot.status());
    int mode = -1;
    unsigned long nodes[16] = {};
    if (syscall(SYS_get_mempolicy, &mode, nodes, 8 * sizeof(nodes), slot->address, MPOL_F_ADDR))
      return "error POLICY it is not known";
    std::string bound = mode == MPOL_BIND ? "bound to" : "free";
    for (size_t node = 0; node < 8 * sizeof(nodes); ++node) {
      if ((nodes[node / 64] >> node % 64 & 1) != 0) bound += " " + std::to_string(node);
    }
    constexpr size_t kPage = 4096;
    std::set<int> on;
    for (size_t at = 0; at < slot->size; at += kPage) {
      void* page = static_cast<char*>(slot->address) + at;
      *static_cast<volatile char*>(page) = 1;
      int node = -1;
      (void)syscall(SYS_move_pages, 0, 1, &page, nullptr, &node, 0);
      on.insert(node);
    }
    bound += ", pages on";
    for (int node : on) bound += " " + std::to_string(node);
    return "ok " + bound;
  }

  void addMembership() {
    commands_["store"] = [this](std::istream& in) {
      std::string address;
      in >> address;
      auto started = store::Server::start(address, {});
      if (!started.ok()) return answer(started.status());
      server_ = *std::move(started);
      return "ok " + server_->address();
    };
    // "await STORE N": until the store knows of N members, neither more nor less.
    commands_["await"] = [](std::istream& in) {
      std::string address;
      size_t wanted = 0;
      in >> address >> wanted;
      auto store = store::openStore(address, {}, seconds(60));
      if (!store.ok()) return answer(store.status());
      auto watch = (*store)->watch("groups/");
      if (!watch.ok()) return answer(watch.status());
      std::set<std::string> known;
      for (bool current = false; !current || known.size() != wanted;) {
        auto changes = (*watch)->next(seconds(60));
        if (!changes.ok()) return answer(changes.status());
        for (const auto& change : *changes) {
          current = current || change.kind == store::Change::Kind::current;
          if (change.kind == store::Change::Kind::set) known.insert(change.entry.key);
          if (change.kind == store::Change::Kind::removed) known.erase(change.entry.key);
        }
      }
      return std::string("ok");
    };
    commands_["join"] = [this](std::istream& in) { return join(in); };
    commands_["leave"] = [this](std::istream&) {
      const Status left = pool_->leave(seconds(60));
      pool_.reset();
      return answer(left);
    };
    // How many mappings this process has: what leaks shows there.
    commands_["mappings"] = [](std::istream&) {
      std::ifstream maps("/proc/self/maps");
      return "ok " + std::to_string(std::count(std::istreambuf_iterator<char>(maps), {}, '\n'));
    };
    commands_["placement"] = [this](std::istream&) { return placement(); };
    commands_["event"] = [this](std::istream& in) { return event(in); };
    // Why the member of the last event left.
    commands_["reason"] = [this](std::istream&) { return answer(reason_); };
    commands_["ranks"] = [this](std::istream&) { return "ok " + shown(pool_->ranks()); };
    commands_["await-ranks"] = [this](std::istream& in) { return awaitRanks(in); };
    commands_["slot"] = [this](std::istream& in) {
      uint32_t rank = 0;
      in >> rank;
      const auto slot = pool_->slot(rank, readSpace(in));
      if (!slot.ok()) return answer(slot.status());
      std::ostringstream text;
      text << slot->address << " " << slot->size << " " << (slot->mapped ? "mapped" : "far");
      return "ok " + text.str();
    };
  }

  char* at(uint32_t rank, PoolSpace space, size_t offset) const {
    return static_cast<char*>(pool_->base(space)) + rank * pool_->stride(space) + offset;
  }

  // What a command names: rank, space, offset, size, seed.
  struct What {
    uint32_t rank = 0;
    PoolSpace space = PoolSpace::host;
    size_t offset = 0;
    size_t size = 0;
    int seed = 0;
  };
  static What readWhat(std::istream& in) {
    What what;
    in >> what.rank;
    what.space = readSpace(in);
    in >> what.offset >> what.size >> what.seed;
    return what;
  }
  static std::string compared(const std::string& found, const What& what) {
    return found == pattern(what.size, static_cast<unsigned>(what.seed)) ? "ok same"
                                                                         : "ok different";
  }

  void addCopies() {
    // Through the pointer alone.
    commands_["store-at"] = [this](std::istream& in) {
      const What what = readWhat(in);
      const std::string bytes = pattern(what.size, static_cast<unsigned>(what.seed));
      std::copy(bytes.begin(), bytes.end(), at(what.rank, what.space, what.offset));
      return std::string("ok");
    };
    commands_["load"] = [this](std::istream& in) {
      const What what = readWhat(in);
      const char* first = at(what.rank, what.space, what.offset);
      return compared(std::string(first, first + what.size), what);
    };
    commands_["put"] = [this](std::istream& in) {
      const What what = readWhat(in);
      const std::string bytes = pattern(what.size, static_cast<unsigned>(what.seed));
      return answer(pool_->copy(at(what.rank, what.space, what.offset), bytes.data(), what.size));
    };
    // "fill-and-stop R SPACE OFFSET SIZE WHERE": stops when the copy is there.
    commands_["fill-and-stop"] = [this](std::istream& in) {
      const What what = readWhat(in);
      std::string bytes(what.size, 'x');
      stopWhereRead(bytes.data() + what.seed);
      return answer(pool_->copy(at(what.rank, what.space, what.offset), bytes.data(), what.size));
    };
    commands_["get"] = [this](std::istream& in) {
      const What what = readWhat(in);
      std::string bytes(what.size, '\0');
      const Status got =
          pool_->copy(bytes.data(), at(what.rank, what.space, what.offset), what.size);
      return got.ok() ? compared(bytes, what) : answer(got);
    };
    // "sum R SPACE OFFSET SIZE" of what a copy fetches; "sum-load" through the pointer.
    commands_["sum"] = [this](std::istream& in) {
      const What what = readWhat(in);
      std::string bytes(what.size, '\0');
      const Status got =
          pool_->copy(bytes.data(), at(what.rank, what.space, what.offset), what.size);
      return got.ok() ? "ok " + std::to_string(checksum(bytes)) : answer(got);
    };
    commands_["sum-load"] = [this](std::istream& in) {
      const What what = readWhat(in);
      return "ok " + std::to_string(checksum({at(what.rank, what.space, what.offset), what.size}));
    };
    commands_["batch"] = [this](std::istream& in) { return batch(in); };
    // "move FROM SPACE OFFSET SIZE x TO SPACE OFFSET"
    commands_["move"] = [this](std::istream& in) {
      const What from = readWhat(in);
      uint32_t rank = 0;
      in >> rank;
      const PoolSpace space = readSpace(in);
      size_t offset = 0;
      in >> offset;
      return answer(
          pool_->copy(at(rank, space, offset), at(from.rank, from.space, from.offset), from.size));
    };
    // Many small pieces, scattered over the slot, from memory of ours or from our slot of that
    // space, and back: "scatter R SPACE OFFSET SIZE SEED"
    commands_["scatter"] = [this](std::istream& in) { return scatter(readWhat(in), false); };
    commands_["between"] = [this](std::istream& in) { return scatter(readWhat(in), true); };
    commands_["rows"] = [this](std::istream& in) { return rows(readWhat(in)); };
  }

  // "batch SIZE SEED RANK OFFSET SOURCE ...": to each rank the pattern, or where SOURCE is "null",
  // from nowhere. Answers the outcome of each.
  std::string batch(std::istream& in) {
    size_t size = 0;
    unsigned seed = 0;
    in >> size >> seed;
    const std::string bytes = pattern(size, seed);
    std::vector<PoolCopy> copies;
    uint32_t rank = 0;
    size_t offset = 0;
    for (std::string source; in >> rank >> offset >> source;) {
      copies.push_back(
          {at(rank, PoolSpace::host, offset), source == "null" ? nullptr : bytes.data(), size});
    }
    auto ticket = pool_->startCopy(copies);
    if (!ticket.ok()) return answer(ticket.status());
    (void)ticket->wait(seconds(60));
    std::string outcomes;
    for (const Status& outcome : ticket->outcomes()) {
      std::string code = outcome.ok() ? "ok" : codeName(outcome.code());
      std::replace(code.begin(), code.end(), ' ', '_');
      outcomes += (outcomes.empty() ? "" : " ") + code;
    }
    return "ok " + outcomes;
  }

  static constexpr size_t kPieces = 100;

  Status copyAll(const std::vector<PoolCopy>& copies) {
    auto ticket = pool_->startCopy(copies);
    return ticket.ok() ? ticket->wait(seconds(60)) : ticket.status();
  }
  // Side by side from `near` on, and in the slot apart and in the other order.
  std::vector<PoolCopy> pieces(const What& what, char* near, bool put) {
    std::vector<PoolCopy> copies;
    for (size_t i = 0; i < kPieces; ++i, near += what.size) {
      char* const far = at(what.rank, what.space, what.offset + (kPieces - 1 - i) * 2 * what.size);
      copies.push_back({put ? far : near, put ? near : far, what.size});
    }
    return copies;
  }

  std::string scatter(const What& what, bool fromSlot) {
    const std::string bytes = pattern(what.size * kPieces, static_cast<unsigned>(what.seed));
    std::string arrived(bytes.size(), '\0');
    std::string back = arrived, host = arrived;
    char* const near = fromSlot ? at(pool_->rank(), what.space, 0) : host.data();
    Status status = pool_->copy(near, bytes.data(), bytes.size());
    if (status.ok()) status = copyAll(pieces(what, near, true));
    if (status.ok()) status = copyAll(pieces(what, arrived.data(), false));
    if (status.ok()) status = pool_->copy(near, back.data(), back.size());
    if (status.ok()) status = copyAll(pieces(what, near, false));
    if (status.ok()) status = pool_->copy(back.data(), near, back.size());
    if (!status.ok()) return answer(status);
    return arrived == bytes && back == bytes ? "ok same" : "ok different";
  }

  // SIZE rows of 100 bytes, 128 apart in the slot.
  std::string rows(const What& what) {
    const std::string bytes = pattern(what.size * 100, static_cast<unsigned>(what.seed));
    char* const slot = at(what.rank, what.space, what.offset);
    const Status sent = pool_->copy2d(slot, 128, bytes.data(), 100, 100, what.size);
    if (!sent.ok()) return answer(sent);
    std::string back(bytes.size(), '\0');
    const Status got = pool_->copy2d(back.data(), 100, slot, 128, 100, what.size);
    if (!got.ok()) return answer(got);
    return back == bytes ? "ok same" : "ok different";
  }

  std::map<std::string, Command> commands_;
  std::unique_ptr<store::Server> server_;
  std::optional<Pool> pool_;
  std::set<uint32_t> heard_;  // who is there, as the events tell
  bool confused_ = false;     // the events contradicted each other
  Status reason_;
};

}  // namespace

}  // namespace hmc::test

int main() {
  hmc::test::PoolPeer peer;
  for (std::string line; std::getline(std::cin, line);) std::cout << peer.obey(line) << std::endl;
  return 0;
}
