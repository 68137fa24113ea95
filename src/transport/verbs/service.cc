#include "transport/verbs/service.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/thread.h"

namespace hmc::verbs {

namespace {
// How long the last words to peers may take when everything ends.
constexpr std::chrono::milliseconds kLastWords{200};
}  // namespace

Result<std::unique_ptr<Service>> Service::create(const Nics& nics) {
  HMC_ASSIGN(auto queues, CompletionQueues::createAll(nics));
  Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return errnoStatus("making an eventfd for RDMA");
  std::unique_ptr<Service> service(new Service(nics, std::move(queues), std::move(wake)));
  service->thread_ = namedThread(
      "hmc-verbs", [raw = service.get()](const std::stop_token& stop) { raw->run(stop); });
  return service;
}

Service::~Service() {
  {
    std::unique_lock lock(mutex_);
    quiet_.wait_for(lock, kLastWords, [&] {
      return std::all_of(leaving_.begin(), leaving_.end(),
                         [](const auto& words) { return words->silent(); });
    });
  }
  thread_.request_stop();
  wake();
  thread_.join();
}

void Service::wake() {
  eventfd_write(wake_.get(), 1);
}

void Service::add(Member& member, Words& words) {
  std::lock_guard lock(mutex_);
  entries_.push_back({&member, &words});
}

void Service::remove(Member& member, std::unique_ptr<Words> words) {
  std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](const Entry& entry) { return entry.member == &member; });
  leaving_.push_back(std::move(words));
  wake();
}

Service::Member* Service::memberOf(const Words* words) {
  auto found = std::find_if(entries_.begin(), entries_.end(),
                            [&](const Entry& entry) { return entry.words == words; });
  return found != entries_.end() ? found->member : nullptr;
}

void Service::run(const std::stop_token& stop) {
  std::vector<pollfd> waiting{{wake_.get(), POLLIN, 0}};
  for (const auto& queues : queues_) waiting.push_back({queues->fd(), POLLIN, 0});
  for (const auto& nic : nics_) waiting.push_back({nic->asyncFd(), POLLIN, 0});
  while (!stop.stop_requested()) {
    poll(waiting.data(), waiting.size(), sleepMs());
    eventfd_t ignored;
    if (waiting[0].revents != 0) eventfd_read(wake_.get(), &ignored);
    std::lock_guard lock(mutex_);
    for (const auto& queues : queues_) hear(*queues);
    for (const auto& nic : nics_) watch(*nic);
    expire();
    bury();
  }
}

int Service::sleepMs() {
  std::lock_guard lock(mutex_);
  auto at = Clock::time_point::max();
  for (const Entry& entry : entries_) at = std::min(at, entry.member->timer());
  return at == Clock::time_point::max() ? -1 : Deadline(at).leftMs();
}

void Service::hear(CompletionQueues& queues) {
  queues.acknowledge();
  queues.arm();
  std::vector<Words::Ended> ended;
  queues.poll([&](const ibv_wc& wc) { ended.push_back(Words::handle(wc)); });
  for (const Words::Ended& one : ended) {
    Member* member = memberOf(one.words);
    if (!member) continue;
    if (one.heard) member->heard(*one.heard);
    if (!one.failure.ok()) member->lost(one.failure);
  }
}

void Service::watch(const Nic& nic) {
  ibv_async_event event{};
  while (nic.library().getAsyncEvent(nic.context(), &event) == 0) {
    const ibv_event_type type = event.event_type;
    nic.library().ackAsyncEvent(&event);
    if (type != IBV_EVENT_DEVICE_FATAL) continue;
    const Status why =
        error(Code::disconnected, "RDMA device {} has failed or was removed", nic.port().device);
    for (const Entry& entry : entries_) {
      if (entry.member->uses(nic)) entry.member->lost(why);
    }
  }
}

void Service::expire() {
  for (const Entry& entry : entries_) {
    if (entry.member->timer() <= Clock::now()) entry.member->expire();
  }
}

void Service::bury() {
  for (auto& words : leaving_) {
    if (words->silent() && !words->idle()) words->stop();
  }
  std::erase_if(leaving_, [](const auto& words) { return words->idle(); });
  quiet_.notify_all();
}

}  // namespace hmc::verbs
