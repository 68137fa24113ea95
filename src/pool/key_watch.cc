#include "pool/key_watch.h"

#include <poll.h>

#include <stop_token>

#include "base/event_fd.h"
#include "base/thread.h"

namespace hmc::pool {

namespace {

// The value of the key, once it is there; false when it was told to stop before.
bool awaitKey(store::Watch& watch, const EventFd& wake, const std::stop_token& stop,
              std::string& value) {
  pollfd watched[] = {{wake.get(), POLLIN, 0}, {watch.fd(), POLLIN, 0}};
  while (!stop.stop_requested()) {
    (void)poll(watched, std::size(watched), -1);
    if (watched[1].revents == 0) continue;
    const auto changes = watch.next(Deadline::now());
    if (changes.status().code() == Code::deadlineExceeded) continue;
    if (!changes.ok()) return false;
    for (const store::Change& change : *changes) {
      if (change.kind != store::Change::Kind::set) continue;
      value = change.entry.value;
      return true;
    }
  }
  return false;
}

}  // namespace

Result<std::unique_ptr<KeyWatch>> KeyWatch::start(store::Store& store, const std::string& key,
                                                  Found found) {
  HMC_ASSIGN(auto made, store.watch(key));
  std::shared_ptr<store::Watch> watch = std::move(made);
  HMC_ASSIGN(auto wake, EventFd::create("a watched key"));
  auto run = [watch = std::move(watch), wake = std::make_shared<EventFd>(std::move(wake)),
              found = std::move(found)](const std::stop_token& stop) mutable {
    const std::stop_callback stopping(stop, [&] { wake->signal(); });
    std::string value;
    const bool there = awaitKey(*watch, *wake, stop, value);
    watch.reset();  // it holds the store, which `found` may want to end
    if (there) found(value);
  };
  HMC_ASSIGN(auto thread, startThread("hmc-key-watch", std::move(run)));
  return std::unique_ptr<KeyWatch>(new KeyWatch(std::move(thread)));
}

KeyWatch::~KeyWatch() {
  if (thread_.get_id() == std::this_thread::get_id()) thread_.detach();
}

}  // namespace hmc::pool
