#include "node/link_end.h"

#include "base/codec.h"
#include "node/node_impl.h"

namespace hmc {

void LinkEnd::prepare(const std::string& transport, const std::string& ours,
                      const std::string& theirs) {
  std::lock_guard lock(mutex_);
  request_ = Writer().string(transport).string(ours).string(theirs).take();
  if (ended_) send();
}

void LinkEnd::say() {
  std::lock_guard lock(mutex_);
  if (!std::exchange(ended_, true) && !request_.empty()) send();
}

void LinkEnd::send() {
  channel_->ask(kDropLink, request_, [](const auto&) {});
}

}  // namespace hmc
