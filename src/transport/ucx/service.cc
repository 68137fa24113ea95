#include "transport/ucx/service.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>

#include "base/codec.h"
#include "base/error.h"
#include "base/log.h"
#include "base/random.h"
#include "base/thread.h"
#include "transport/ucx/lanes.h"

namespace hmc::ucx {

namespace {

constexpr std::chrono::microseconds kServiceSpin{50};
constexpr unsigned kMessage = 0;  // the only kind of active message
constexpr uint64_t kWake = 0;     // in epoll; links have random numbers
constexpr uint64_t kWords = 1;

// A word is said to a link of the peer. Hello does nothing but bring up the connection that will
// tell when the peer dies, and is answered.
constexpr uint8_t kHello = 1;
constexpr uint8_t kWelcome = 2;
constexpr uint8_t kGoodbye = 3;

constexpr std::chrono::seconds kFarewell{2};
// While paths part: they have no other call.
constexpr int kPartingMs = 1;

// The kernel says at once when the process at the other end of a socket is gone; UCX 1.13 then
// tells the same as for a peer that was silent for so long.
constexpr std::chrono::milliseconds kTcpSilence{10000};

// The bytes of a word, until UCX has sent them.
struct Spoken {
  const Api& api;
  std::string bytes;
  static void over(void* request, ucs_status_t, void* spoken) {
    std::unique_ptr<Spoken> self(static_cast<Spoken*>(spoken));
    self->api.ucp_request_free(request);
  }
};

}  // namespace

// A peer's service, to which all links with that peer speak. Its endpoint stays until it fails: UCX
// (1.13 to 1.22, over tcp) stumbles over what arrives for one that was closed.
struct Service::Counterpart final : EndpointOwner {
  explicit Counterpart(Service& owner) : service(owner) {}
  void endpointFailed(ucs_status_t status) override {
    lost = status;
    service.anyLost_ = true;
  }

  Service& service;
  ucp_ep_h endpoint = nullptr;
  std::string lane;
  ucs_status_t lost = UCS_OK;
  uint64_t number = 0;   // what a welcome calls it
  bool greeted = false;  // the last hello was answered
};

// What a peer asks of us over one link is served by `target`.
struct Service::Guest {
  const uint64_t link;
  Host& host;
  const std::shared_ptr<Lease> lease;
  std::unique_ptr<Target> target;      // none once we have left
  Counterpart* counterpart = nullptr;  // none before connect(), or when it is lost
  uint64_t peer = 0;                   // what the peer calls this link
  bool said = false;                   // that we have left
};

Result<std::unique_ptr<Service>> Service::create(Context& context, Areas& areas,
                                                 Partings& partings) {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return errnoStatus("making the ucx service's epoll");
  Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return errnoStatus("making the ucx service's eventfd");
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWake;
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0) {
    return errnoStatus("watching the ucx service's eventfd");
  }
  HMC_ASSIGN(auto words, Worker::create(context));
  std::unique_ptr<Service> service(
      new Service(context, areas, partings, std::move(words), std::move(epoll), std::move(wake)));
  HMC_TRY(service->words_->hear(kMessage, &Service::heard, service.get()));
  service->thread_ =
      namedThread("hmc-ucx", [raw = service.get()](std::stop_token stop) { raw->run(stop); });
  return service;
}

Service::Service(Context& context, Areas& areas, Partings& partings, std::unique_ptr<Worker> words,
                 Fd epoll, Fd wake)
    : context_(context),
      areas_(areas),
      partings_(partings),
      epoll_(std::move(epoll)),
      wake_(std::move(wake)),
      words_(std::move(words)) {
  watch(kWords, words_->fd());
}

Service::~Service() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  eventfd_write(wake_.get(), 1);
  thread_.join();
  eventfd_t ignored;
  eventfd_read(wake_.get(), &ignored);
  const Deadline patience = kFarewell;
  while ((unsettled() || partings_.step()) && !patience.passed()) {
    epoll_event event;
    if (!step()) epoll_wait(epoll_.get(), &event, 1, kPartingMs);
  }
}

std::unique_lock<std::mutex> Service::enter() {
  ++callers_;
  std::unique_lock lock(mutex_);
  --callers_;
  callers_.notify_all();
  return lock;
}

Service::Guest* Service::find(uint64_t link) {
  auto found = guests_.find(link);
  return found == guests_.end() ? nullptr : found->second.get();
}

// Fails only when the kernel has no memory for it; the peer then runs into its own deadline.
void Service::watch(uint64_t id, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = id;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    logWarn("ucx: cannot watch a worker: {}", errnoText(errno));
  }
}

Result<std::string> Service::open(uint64_t link, Host& host, std::shared_ptr<Lease> lease) {
  HMC_ASSIGN(auto target, Target::create(context_, areas_, lease));
  const std::string address = target->address();
  auto lock = enter();
  watch(link, target->fd());
  guests_[link] = std::make_unique<Guest>(Guest{link, host, std::move(lease), std::move(target)});
  awake_.push_back(link);
  eventfd_write(wake_.get(), 1);
  return address;
}

Status Service::connect(uint64_t link, const Address& peer) {
  auto lock = enter();
  Guest* guest = find(link);
  if (!guest) return error(Code::disconnected, "this ucx link is closed");
  HMC_ASSIGN(guest->counterpart, counterpart(peer.words));
  guest->peer = peer.link;
  if (!guest->counterpart->greeted) {
    say(guest->counterpart->endpoint, kHello, guest->counterpart->number);
  }
  if (!guest->target) leave(*guest);
  return Status();
}

Status Service::awaitPeer(uint64_t link, Deadline deadline) {
  auto lock = enter();
  while (true) {
    Guest* guest = find(link);
    if (!guest || !guest->counterpart) {
      return error(Code::disconnected, "the peer of this ucx link is gone");
    }
    if (guest->counterpart->greeted) return Status();
    if (changed_.wait_until(lock, deadline.at()) == std::cv_status::timeout) {
      return error(Code::deadlineExceeded, "the peer's ucx service did not answer in time");
    }
  }
}

Result<Service::Counterpart*> Service::counterpart(const std::string& words) {
  auto& known = counterparts_[words];
  if (known) return known.get();
  auto made = std::make_unique<Counterpart>(*this);
  auto endpoint = words_->connect(words, *made);
  if (!endpoint.ok()) {
    counterparts_.erase(words);
    return endpoint.status();
  }
  made->endpoint = *endpoint;
  made->number = randomU64();
  made->lane = laneOf(context_.api(), made->endpoint);
  known = std::move(made);
  return known.get();
}

void Service::say(ucp_ep_h endpoint, uint8_t word, uint64_t link) {
  const Api& api = context_.api();
  auto spoken = std::make_unique<Spoken>(Spoken{api, Writer().u8(word).u64(link).take()});
  static const Bytes kNothing;
  const ucs_status_ptr_t request =
      words_->send(endpoint, kMessage, spoken->bytes.data(), spoken->bytes.size(), kNothing,
                   &Spoken::over, spoken.get());
  if (UCS_PTR_IS_PTR(request)) (void)spoken.release();
  wordsAwake_ = true;
  eventfd_write(wake_.get(), 1);
}

ucs_status_t Service::heard(void* service, const void* header, size_t headerSize, void*, size_t,
                            const ucp_am_recv_param_t* param) {
  auto* self = static_cast<Service*>(service);
  Reader reader(std::string_view(static_cast<const char*>(header), headerSize));
  const uint8_t word = reader.u8();
  const uint64_t link = reader.u64();
  if (!reader.finish("a ucx word").ok()) return UCS_OK;
  if (word == kGoodbye) self->goodbyes_.push_back(link);
  if (word == kWelcome) {
    for (auto& [address, known] : self->counterparts_) {
      if (known->number == link) known->greeted = true;
    }
    self->changed_.notify_all();
  }
  if (word == kHello && (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0) {
    self->say(param->reply_ep, kWelcome, link);
  }
  return UCS_OK;
}

void Service::leave(uint64_t link) {
  auto lock = enter();
  if (Guest* guest = find(link)) leave(*guest);
}

void Service::leave(Guest& guest) {
  if (guest.target) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, guest.target->fd(), nullptr);
    std::erase(awake_, guest.link);
    guest.target->refuse();
    if (guest.counterpart && !guest.target->greeted()) partings_.add(std::move(guest.target));
    guest.target.reset();
  }
  if (guest.counterpart && !std::exchange(guest.said, true))
    say(guest.counterpart->endpoint, kGoodbye, guest.peer);
}

void Service::remove(uint64_t link) {
  auto lock = enter();
  if (Guest* guest = find(link)) leave(*guest);
  guests_.erase(link);
}

void Service::noticeBroken() {
  anyBroken_ = true;
  eventfd_write(wake_.get(), 1);
}

void Service::leaveBroken() {
  for (auto& [link, guest] : guests_) {
    if (guest->target && guest->host.broken()) leave(*guest);
  }
}

void Service::takeGoodbyes() {
  for (const uint64_t link : std::exchange(goodbyes_, {})) {
    Guest* guest = find(link);
    if (!guest) continue;
    leave(*guest);
    guest->host.peerLeft(error(Code::disconnected, "the peer closed this ucx link"), true);
  }
}

void Service::dropLost() {
  anyLost_ = false;
  changed_.notify_all();
  for (auto& [link, guest] : guests_) {
    Counterpart* lost = guest->counterpart;
    if (!lost || lost->lost == UCS_OK) continue;
    guest->counterpart = nullptr;
    leave(*guest);
    const bool quick = !guest->lease || guest->lease->length() <= kTcpSilence;
    const bool gone = lost->lost == UCS_ERR_CONNECTION_RESET || (isTcp(lost->lane) && quick);
    guest->host.peerLeft(error(Code::disconnected, "the peer's ucx service was lost over {}: {}",
                               lost->lane, context_.api().text(lost->lost)),
                         gone);
  }
  std::erase_if(counterparts_, [&](auto& entry) {
    if (entry.second->lost == UCS_OK) return false;
    words_->drop(entry.second->endpoint);
    return true;
  });
}

bool Service::serve(Guest& guest) {
  if (!guest.target->expired()) return guest.target->serve();
  leave(guest);
  return false;
}

bool Service::step() {
  bool moved = wordsAwake_ && words_->progress();
  for (size_t i = 0; i < awake_.size(); ++i) {
    // leave() takes the guest out of the list: who follows it is seen the next time.
    moved = serve(*guests_.at(awake_[i])) || moved;
  }
  if (!goodbyes_.empty()) takeGoodbyes();
  if (anyLost_) dropLost();
  if (anyBroken_.exchange(false)) leaveBroken();
  return moved;
}

bool Service::unsettled() const {
  return std::any_of(counterparts_.begin(), counterparts_.end(), [](const auto& entry) {
    return !entry.second->greeted && entry.second->lost == UCS_OK;
  });
}

bool Service::armAll() {
  if (wordsAwake_) wordsAwake_ = !words_->arm();
  std::erase_if(awake_, [&](uint64_t link) {
    Target& target = *guests_.at(link)->target;
    return !target.expired() && target.arm();
  });
  return !wordsAwake_ && awake_.empty() && goodbyes_.empty() && !anyLost_;
}

void Service::run(const std::stop_token& stop) {
  auto lastTraffic = Clock::time_point::min();
  while (!stop.stop_requested()) {
    for (int callers = callers_; callers > 0; callers = callers_) callers_.wait(callers);
    bool moved = false;
    {
      std::lock_guard lock(mutex_);
      moved = step();
    }
    const auto now = Clock::now();
    if (moved) lastTraffic = now;
    // Requests come in bursts: who sleeps between two of them adds a wake-up to each.
    if (lastTraffic != Clock::time_point::min() && now - lastTraffic < kServiceSpin) continue;
    {
      std::lock_guard lock(mutex_);
      if (!armAll()) continue;
    }
    epoll_event events[64];
    const int timeout = partings_.step() ? kPartingMs : -1;
    const int count = epoll_wait(epoll_.get(), events, std::size(events), timeout);
    std::lock_guard lock(mutex_);
    for (int i = 0; i < count; ++i) {
      const uint64_t id = events[i].data.u64;
      if (id == kWake) {
        eventfd_t ignored;
        eventfd_read(wake_.get(), &ignored);
      } else if (id == kWords) {
        wordsAwake_ = true;
      } else if (find(id) && find(id)->target &&
                 std::find(awake_.begin(), awake_.end(), id) == awake_.end()) {
        awake_.push_back(id);
      }
    }
  }
}

}  // namespace hmc::ucx
