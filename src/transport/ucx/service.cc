#include "transport/ucx/service.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>

#include "base/codec.h"
#include "base/error.h"
#include "base/log.h"
#include "base/thread.h"
#include "transport/ucx/lanes.h"

namespace hmc::ucx {

namespace {

constexpr std::chrono::microseconds kSpin{50};
constexpr unsigned kMessage = 0;  // the only kind of active message
constexpr uint64_t kWake = 0;     // in epoll; links have random numbers
constexpr uint64_t kWords = 1;

// A word is said to a link of the peer. Hello does nothing but bring up the connection that will
// tell when the peer dies.
constexpr uint8_t kHello = 1;
constexpr uint8_t kGoodbye = 2;

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

// What a peer asks of us is served by `target`, and what there is to say goes over `words`.
struct Service::Guest final : EndpointOwner {
  Guest(Service& owner, uint64_t number, Host& who, std::shared_ptr<Lease> how)
      : service(owner), link(number), host(who), lease(std::move(how)) {}
  void endpointFailed(ucs_status_t status) override { service.heard_.push_back({link, status}); }

  Service& service;
  const uint64_t link;
  Host& host;
  const std::shared_ptr<Lease> lease;
  std::unique_ptr<Worker> target;  // none once we have left
  ucp_ep_h words = nullptr;
  uint64_t peer = 0;  // what the peer calls this link
  std::string lane;   // of words
  bool left = false;  // nothing is served any more
  bool said = false;  // and the peer was told
};

Result<std::unique_ptr<Service>> Service::create(Context& context) {
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
  return std::unique_ptr<Service>(
      new Service(context, std::move(words), std::move(epoll), std::move(wake)));
}

Service::Service(Context& context, std::unique_ptr<Worker> words, Fd epoll, Fd wake)
    : context_(context),
      epoll_(std::move(epoll)),
      wake_(std::move(wake)),
      words_(std::move(words)) {
  ucp_am_handler_param_t params{};
  params.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG;
  params.id = kMessage;
  params.cb = &Service::heard;
  params.arg = this;
  context.api().ucp_worker_set_am_recv_handler(words_->handle(), &params);
  listen(kWords, *words_);
  thread_ = namedThread("hmc-ucx", [this](std::stop_token stop) { run(stop); });
}

Service::~Service() {
  thread_.request_stop();
  eventfd_write(wake_.get(), 1);
  thread_.join();
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
void Service::listen(uint64_t id, const Worker& worker) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = id;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, worker.fd(), &event) != 0) {
    logWarn("ucx: cannot watch a worker: {}", errnoText(errno));
  }
}

Result<std::string> Service::open(uint64_t link, Host& host, std::shared_ptr<Lease> lease) {
  HMC_ASSIGN(auto worker, Worker::create(context_));
  const std::string address = worker->address();
  auto lock = enter();
  auto guest = std::make_unique<Guest>(*this, link, host, std::move(lease));
  guest->target = std::move(worker);
  listen(link, *guest->target);
  guests_[link] = std::move(guest);
  awake_.push_back(link);
  eventfd_write(wake_.get(), 1);
  return address;
}

Status Service::connect(uint64_t link, const Address& peer) {
  auto lock = enter();
  Guest* guest = find(link);
  if (!guest || guest->words) return error(Code::invalidArgument, "this ucx link is not new");
  HMC_ASSIGN(guest->words, words_->connect(peer.words, *guest));
  guest->lane = laneOf(context_.api(), guest->words);
  guest->peer = peer.link;
  say(*guest, kHello);
  if (guest->left) leave(*guest);
  return Status();
}

void Service::say(Guest& guest, uint8_t word) {
  const Api& api = context_.api();
  auto spoken = std::make_unique<Spoken>(Spoken{api, Writer().u8(word).u64(guest.peer).take()});
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = &Spoken::over;
  params.user_data = spoken.get();
  const ucs_status_ptr_t request = api.ucp_am_send_nbx(guest.words, kMessage, spoken->bytes.data(),
                                                       spoken->bytes.size(), nullptr, 0, &params);
  if (UCS_PTR_IS_PTR(request)) spoken.release();
  wordsAwake_ = true;
  eventfd_write(wake_.get(), 1);
}

ucs_status_t Service::heard(void* service, const void* header, size_t headerSize, void*, size_t,
                            const ucp_am_recv_param_t*) {
  auto* self = static_cast<Service*>(service);
  Reader reader(std::string_view(static_cast<const char*>(header), headerSize));
  const uint8_t word = reader.u8();
  const uint64_t link = reader.u64();
  if (reader.finish("a ucx word").ok() && word == kGoodbye) self->heard_.push_back({link, UCS_OK});
  return UCS_OK;
}

void Service::leave(uint64_t link) {
  auto lock = enter();
  if (Guest* guest = find(link)) leave(*guest);
}

void Service::leave(Guest& guest) {
  guest.left = true;
  if (guest.target) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, guest.target->fd(), nullptr);
    guest.target.reset();
    std::erase(awake_, guest.link);
  }
  if (!guest.words || std::exchange(guest.said, true)) return;
  say(guest, kGoodbye);
}

void Service::remove(uint64_t link) {
  auto lock = enter();
  Guest* guest = find(link);
  if (!guest) return;
  leave(*guest);
  if (guest->words) words_->closeGently(guest->words);
  guests_.erase(link);
}

void Service::noticeBroken() {
  anyBroken_ = true;
  eventfd_write(wake_.get(), 1);
}

void Service::leaveBroken() {
  for (auto& [link, guest] : guests_) {
    if (!guest->left && guest->host.broken()) leave(*guest);
  }
}

void Service::answerHeard() {
  for (const Heard& one : std::exchange(heard_, {})) {
    Guest* guest = find(one.link);
    if (!guest) continue;
    leave(*guest);
    if (one.lost == UCS_OK) {
      guest->host.peerLeft(error(Code::disconnected, "the peer closed this ucx link"), true);
      continue;
    }
    const bool longEnough = guest->lease && guest->lease->length() > kTcpSilence;
    const bool gone = one.lost == UCS_ERR_CONNECTION_RESET || (isTcp(guest->lane) && !longEnough);
    guest->host.peerLeft(error(Code::disconnected, "the peer's ucx service was lost over {}: {}",
                               guest->lane, context_.api().text(one.lost)),
                         gone);
  }
}

// A process that was stopped for longer than the lease must not apply what it finds when it wakes.
bool Service::serve(Guest& guest) {
  if (guest.lease && guest.lease->expired()) {
    leave(guest);
    return false;
  }
  return guest.target->progress();
}

bool Service::step() {
  bool moved = wordsAwake_ && words_->progress();
  for (size_t i = 0; i < awake_.size(); ++i) {
    // leave() takes the guest out of the list: who follows it is seen the next time.
    moved = serve(*guests_.at(awake_[i])) || moved;
  }
  if (!heard_.empty()) answerHeard();
  if (anyBroken_.exchange(false)) leaveBroken();
  return moved;
}

bool Service::armAll() {
  if (wordsAwake_) wordsAwake_ = !words_->arm();
  std::erase_if(awake_, [&](uint64_t link) { return guests_.at(link)->target->arm(); });
  return !wordsAwake_ && awake_.empty() && heard_.empty();
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
    if (lastTraffic != Clock::time_point::min() && now - lastTraffic < kSpin) continue;
    {
      std::lock_guard lock(mutex_);
      if (!armAll()) continue;
    }
    epoll_event events[64];
    const int count = epoll_wait(epoll_.get(), events, std::size(events), -1);
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
