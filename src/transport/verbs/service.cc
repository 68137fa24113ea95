#include "transport/verbs/service.h"

#include <poll.h>

#include <algorithm>

#include "base/thread.h"

namespace hmc::verbs {

namespace {
// How long the last messages to peers may take when the transport ends.
constexpr std::chrono::milliseconds kLastMessages{200};
}  // namespace

Result<std::unique_ptr<Service>> Service::create(const Nics& nics) {
  HMC_ASSIGN(auto queues, CompletionQueues::create(*nics[0]));
  HMC_ASSIGN(EventFd wake, EventFd::create("the RDMA service"));
  std::unique_ptr<Service> service(new Service(nics, std::move(queues), std::move(wake)));
  service->thread_ = namedThread(
      "hmc-verbs", [raw = service.get()](const std::stop_token& stop) { raw->run(stop); });
  return service;
}

Service::~Service() {
  {
    std::unique_lock lock(mutex_);
    flushed_.wait_for(lock, kLastMessages, [&] {
      return std::all_of(leaving_.begin(), leaving_.end(),
                         [](const auto& control) { return control->flushed(); });
    });
  }
  thread_.request_stop();
  wake();
  thread_.join();
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

void Service::run(const std::stop_token& stop) {
  std::vector<pollfd> waiting{{wake_.get(), POLLIN, 0}, {queues_->fd(), POLLIN, 0}};
  for (const auto& nic : nics_) waiting.push_back({nic->asyncFd(), POLLIN, 0});
  while (!stop.stop_requested()) {
    poll(waiting.data(), waiting.size(), sleepMs());
    wake_.clear();
    std::lock_guard lock(mutex_);
    receive();
    for (const auto& nic : nics_) watch(*nic);
    expire();
    reap();
  }
}

int Service::sleepMs() {
  std::lock_guard lock(mutex_);
  auto at = Clock::time_point::max();
  for (const Entry& entry : entries_) at = std::min(at, entry.member->timer());
  return at == Clock::time_point::max() ? -1 : Deadline(at).leftMs();
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
void Service::watch(const Nic& nic) {
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
