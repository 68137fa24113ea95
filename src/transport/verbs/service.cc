#include "transport/verbs/service.h"

#include <algorithm>

#include "base/error.h"

namespace hmc::verbs {

namespace {
// How long the last messages to peers may take when the transport ends.
constexpr std::chrono::milliseconds kLastMessages{200};
}  // namespace

Result<std::unique_ptr<Service>> Service::create(const Nics& nics) {
  HMC_ASSIGN(auto queues, CompletionQueues::create(*nics[0]));
  std::unique_ptr<Service> service(new Service(nics, std::move(queues)));
  HMC_ASSIGN(service->loop_, Loop::create("hmc-verbs"));
  Status status;
  service->loop_->run([&] { service->start(status); });
  HMC_TRY(status);
  return service;
}

void Service::start(Status& status) {
  timer_ = std::make_unique<Loop::Timer>(*loop_);
  std::vector<int> fds{queues_->fd()};
  for (const auto& nic : nics_) fds.push_back(nic->asyncFd());
  for (const int fd : fds) {
    auto watch = loop_->watch(fd, EPOLLIN, [this](uint32_t) { step(); });
    status = watch.status();
    if (!status.ok()) return;
    watches_.push_back(*std::move(watch));
  }
  step();
}

Service::~Service() {
  {
    std::unique_lock lock(mutex_);
    flushed_.wait_for(lock, kLastMessages, [&] {
      return std::all_of(leaving_.begin(), leaving_.end(),
                         [](const auto& control) { return control->flushed(); });
    });
  }
  if (loop_) loop_->stop();
}

void Service::add(Member& member, ControlQp& control) {
  std::lock_guard lock(mutex_);
  entries_.push_back({&member, &control});
}

void Service::remove(Member& member, std::unique_ptr<ControlQp> control) {
  std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](const Entry& entry) { return entry.member == &member; });
  leaving_.push_back(std::move(control));
  wake();
}

Service::Member* Service::memberOf(const ControlQp* control) {
  auto found = std::find_if(entries_.begin(), entries_.end(),
                            [&](const Entry& entry) { return entry.control == control; });
  return found != entries_.end() ? found->member : nullptr;
}

void Service::step() {
  std::lock_guard lock(mutex_);
  receive();
  for (const auto& nic : nics_) readEvents(*nic);
  expire();
  reap();
  auto next = Clock::time_point::max();
  for (const Entry& entry : entries_) next = std::min(next, entry.member->timer());
  timer_->cancel();
  if (next == Clock::time_point::max()) return;
  timer_->after(std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()),
                [this] { step(); });
}

void Service::receive() {
  queues_->acknowledge();
  queues_->arm();
  std::vector<ControlQp::Event> events;
  queues_->poll([&](const ibv_wc& wc) { events.push_back(ControlQp::handle(wc)); });
  for (const ControlQp::Event& event : events) {
    Member* member = memberOf(event.qp);
    if (!member) continue;
    if (event.received) member->received(*event.received);
    if (!event.failure.ok()) member->lost(event.failure);
  }
}

// Every link uses every NIC.
void Service::readEvents(const Nic& nic) {
  ibv_async_event event{};
  while (nic.library().ibv_get_async_event(nic.context(), &event) == 0) {
    const ibv_event_type type = event.event_type;
    nic.library().ibv_ack_async_event(&event);
    if (type != IBV_EVENT_DEVICE_FATAL) continue;
    const Status why =
        error(Code::disconnected, "RDMA device {} has failed or was removed", nic.port().device);
    for (const Entry& entry : entries_) entry.member->lost(why);
  }
}

void Service::expire() {
  for (const Entry& entry : entries_) {
    if (entry.member->timer() <= Clock::now()) entry.member->expire();
  }
}

void Service::reap() {
  for (auto& control : leaving_) {
    if (control->flushed() && !control->idle()) control->stop();
  }
  std::erase_if(leaving_, [](const auto& control) { return control->idle(); });
  flushed_.notify_all();
}

}  // namespace hmc::verbs
