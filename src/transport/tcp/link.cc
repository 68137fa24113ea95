#include "transport/tcp/link.h"

#include <poll.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/random.h"
#include "transport/check.h"

namespace hmc::tcp {

namespace {

// A stream may be that much busier than the others before they are chosen: small operations that
// travel together cost one system call.
constexpr uint64_t kStick = 256 << 10;
// Another stream is dialled when all have that much to do.
constexpr uint64_t kGrow = size_t{1} << 20;

}  // namespace

Result<std::unique_ptr<Link>> TcpLink::create(Service& service, Progress& progress,
                                              TransportCounters& counters,
                                              const TcpOptions& options,
                                              const LinkOptions& linkOptions) {
  Address address{0, "", options.exchange, options.integrity && !options.tls};
  if (!linkOptions.initiator) {
    HMC_ASSIGN(address.port, service.open(linkOptions.localHost));
    address.token = randomBytes(kTokenSize);
  }
  std::unique_ptr<TcpLink> link(
      new TcpLink(service, progress, counters, options, linkOptions, std::move(address)));
  if (!linkOptions.initiator) service.expect(link->address_.token, *link);
  return std::unique_ptr<Link>(std::move(link));
}

TcpLink::TcpLink(Service& service, Progress& progress, TransportCounters& counters,
                 const TcpOptions& options, const LinkOptions& linkOptions, Address address)
    : service_(service),
      progress_(progress),
      options_(options),
      lease_(linkOptions.lease),
      credentials_(linkOptions.credentials),
      onEnd_(linkOptions.onEnd),
      peerHost_(linkOptions.peerHost),
      address_(std::move(address)),
      encoded_(address_.encode()) {
  for (int i = 0; i < options.streams; ++i) {
    streams_.push_back(std::make_unique<OriginStream>(lease_->length(), counters));
  }
  number_ = progress.add(*this);
}

TcpLink::~TcpLink() {
  close(error(Code::cancelled, "the link was destroyed"));
  awaitFence();
  progress_.remove(number_);
}

// Drives our own sockets, because nobody may be in progress().
void TcpLink::awaitFence() {
  while (true) {
    std::vector<pollfd> waiting;
    auto until = Clock::time_point::max();
    for (auto& stream : streams_) {
      stream->pump(true);
      stream->expire();
      if (stream->fenceAt() == Clock::time_point::max()) continue;
      until = std::min(until, stream->fenceAt());
      waiting.push_back({stream->fd(), POLLIN, 0});
    }
    if (waiting.empty()) return;
    // Another thread's progress() may take the event: look again soon.
    poll(waiting.data(), waiting.size(), Deadline(until).leftMs(20));
  }
}

Status TcpLink::connect(std::string_view peerAddress) {
  HMC_ASSIGN(Address peer, Address::decode(peerAddress));
  if (peer.dials() == address_.dials()) {
    return error(Code::invalidArgument, "exactly one side of a tcp link dials, and here {}",
                 peer.dials() ? "both do" : "neither does");
  }
  if (closed_) return error(Code::disconnected, "this tcp link is closed");
  if (connected_.exchange(true)) {
    return error(Code::invalidArgument, "this tcp link is already connected");
  }
  checked_ = (address_.checks || peer.checks) && !options_.tls;
  {
    std::lock_guard lock(mutex_);
    exchange_ = peer.exchange;
    peer_ = peer.dials() ? peerHost_ : endpointName(peerHost_, peer.port);
    upBy_ = Deadline(options_.connectTimeout).at();
  }
  if (address_.dials()) {
    if (Status status = dialFirst(peer); !status.ok()) {
      close(status);
      return status;
    }
    // A close() in between has dropped only what was there.
    if (closed_) service_.drop(*this);
  }
  setTimer();
  progress_.wake();
  return Status();
}

std::string TcpLink::exchangeOfPeer() {
  std::lock_guard lock(mutex_);
  return exchange_;
}

bool TcpLink::accepts(const char* bytes) {
  const Greeting greeting = Greeting::unpack(bytes);
  // A peer whose words were altered on the way may not know that we check.
  if (address_.checks && !greeting.checked) return false;
  return greeting.stream < kMostStreams && Greeting::isProven(bytes, credentials_) &&
         accepted_.emplace(greeting.role, greeting.stream).second;
}

Result<TcpLink::Dialled> TcpLink::dialFor(Role role, size_t stream) {
  HMC_ASSIGN(Fd fd, dial(peerHost_, dialled_.port));
  const Greeting greeting{static_cast<uint32_t>(role), static_cast<uint32_t>(stream),
                          dialled_.token, checked_};
  HMC_ASSIGN(Connection connection, service_.secured(std::move(fd), dialled_.token, credentials_));
  return Dialled{std::move(connection), greeting.pack(credentials_)};
}

Status TcpLink::dialForward(size_t stream) {
  HMC_ASSIGN(Dialled dialled, dialFor(Role::forward, stream));
  std::string last = farewell(dialled.greeting, credentials_);
  return streams_[stream]->attach(
      std::move(dialled.connection), endpointName(peerHost_, dialled_.port),
      {std::move(dialled.greeting), std::move(last), exchangeOfPeer(), checked_}, progress_,
      number_, stream);
}

Status TcpLink::dialFirst(const Address& peer) {
  dialled_ = peer;
  reverse_ = 1;
  HMC_TRY(dialForward(0));
  forward_ = 1;
  HMC_ASSIGN(Dialled theirs, dialFor(Role::reverse, 0));
  service_.serve(*this, std::move(theirs.connection), std::move(theirs.greeting));
  noticeEnd();
  return Status();
}

// The link goes on with fewer streams where another cannot be had.
void TcpLink::growForward() {
  size_t stream = forward_.load(std::memory_order_relaxed);
  if (stream == 0 || stream == streams_.size() ||
      !forward_.compare_exchange_strong(stream, stream + 1)) {
    return;
  }
  if (Status dialled = dialForward(stream); !dialled.ok()) {
    logDebug("tcp: {} streams instead of {}: {}", stream, streams_.size(), dialled.message());
    return;
  }
  {
    std::lock_guard lock(mutex_);
    upBy_ = Deadline(options_.connectTimeout).at();
  }
  setTimer();
  progress_.wake();
}

std::optional<TcpLink::Dialled> TcpLink::dialAnother() {
  if (reverse_ == 0 || reverse_ == streams_.size()) return std::nullopt;
  auto dialled = dialFor(Role::reverse, reverse_++);
  if (dialled.ok()) return *std::move(dialled);
  logDebug("tcp: {} streams instead of {}: {}", reverse_ - 1, streams_.size(),
           dialled.status().message());
  return std::nullopt;
}

void TcpLink::connected(Connection connection, const char* greeting) {
  const std::string name = peerName(connection.get());
  for (size_t i = 0; i < streams_.size(); ++i) {
    if (streams_[i]->attached()) continue;
    // A failure leaves the stream without a connection, which the timer notices.
    (void)streams_[i]->attach(std::move(connection), name,
                              {"", farewell({greeting, Greeting::kSize}, credentials_),
                               exchangeOfPeer(), Greeting::unpack(greeting).checked},
                              progress_, number_, i);
    break;
  }
  setTimer();
  progress_.wake();
}

Result<std::unique_ptr<RemoteMemory>> TcpLink::importKey(std::string_view bytes, Deadline,
                                                         void* place) {
  HMC_TRY(checkPlace(place, "tcp"));
  HMC_ASSIGN(Key key, Key::decode(bytes));
  return std::unique_ptr<RemoteMemory>(
      new TcpRemote(key.region, key.size, key.writable ? Access::readWrite : Access::read,
                    describe(options_, checked_)));
}

size_t TcpLink::post(std::span<const Op> ops) {
  size_t accepted = 0;
  OriginStream* last = nullptr;
  bool several = false;
  for (; accepted < ops.size(); ++accepted) {
    const Op& op = ops[accepted];
    if (Status status = checkOp(op, options_.piece); !status.ok()) {
      const Status why = streams_[0]->why();
      op.completion->fail(why.ok() ? status : why);
      continue;
    }
    OriginStream* stream = enqueue(op);
    if (stream == nullptr) break;
    if (last != nullptr && last != stream) {
      last->flush(/*more=*/true);
      several = true;
    }
    last = stream;
  }
  if (last != nullptr) last->flush();
  if (several) {
    for (auto& stream : streams_) stream->finish();
  }
  if (accepted > 0) noticeEnd();
  return accepted;
}

// Stays with a stream until it is busier than the least busy one by kStick, then goes to that one.
OriginStream* TcpLink::enqueue(const Op& op) {
  OriginStream* least = nullptr;
  for (auto& stream : streams_) {
    if (stream->usable() && (!least || stream->load() < least->load())) least = stream.get();
  }
  if (least && least->load() > kGrow) growForward();
  OriginStream* stream = preferred_.load(std::memory_order_relaxed);
  if (least && (!stream || stream->load() > least->load() + kStick)) {
    stream = least;
    preferred_.store(stream, std::memory_order_relaxed);
  }
  if (stream && stream->enqueue(op)) return stream;
  for (auto& other : streams_) {
    if (other->enqueue(op)) return other.get();
  }
  return nullptr;
}

bool TcpLink::ready(size_t stream, bool over) {
  const bool ended = streams_[stream]->pump(over);
  if (!closed_ && timer_.load() != Clock::time_point::max()) setTimer();
  noticeEnd();
  return ended;
}

// The streams of a link live and die together.
void TcpLink::noticeEnd() {
  if (closed_) return;
  for (auto& stream : streams_) {
    if (stream->ended()) return close(stream->why());
  }
}

void TcpLink::close(const Status& why) {
  if (closed_.exchange(true)) return;
  onEnd_();
  for (auto& stream : streams_) stream->close(why);
  service_.drop(*this);
  setTimer();
  progress_.wake();
}

void TcpLink::setTimer() {
  std::lock_guard lock(mutex_);
  auto at = Clock::time_point::max();
  if (closed_) {
    for (auto& stream : streams_) at = std::min(at, stream->fenceAt());
  } else if (!up()) {
    at = upBy_;
  }
  timer_ = at;
}

// As many as there are by now.
bool TcpLink::up() const {
  bool any = false;
  for (const auto& stream : streams_) {
    if (!stream->attached()) continue;
    if (!stream->up()) return false;
    any = true;
  }
  return any;
}

bool TcpLink::expire() {
  bool ended = false;
  if (!closed_ && streams_[0]->up()) {
    for (auto& stream : streams_) stream->dropIfNotUp();
  } else if (!closed_) {
    std::string peer;
    {
      std::lock_guard lock(mutex_);
      peer = peer_;
    }
    close(error(Code::disconnected, "the tcp connections with {} did not come up within {} ms",
                peer, options_.connectTimeout.count()));
    ended = true;
  }
  for (auto& stream : streams_) ended = stream->expire() || ended;
  setTimer();
  return ended;
}

}  // namespace hmc::tcp
