#pragma once

#include <memory>
#include <string>

#include "fakes/link_options.h"
#include "fakes/must.h"
#include "fakes/quiet_ucx.h"
#include "transport/ucx/ucx.h"

namespace hmc::ucx {

using test::must;

inline constexpr std::chrono::seconds kPatience{30};
inline const bool kQuiet = test::keepUcxFromHookingMemory();

// Two transports in one process, and a link between them that begins at a.
class UcxPair {
 public:
  UcxPair() : a(must(create())), b(must(create())) {
    toB = must(a->openLink({.initiator = true, .lease = leaseOfA}));
    toA = must(b->openLink({.lease = leaseOfB}));
    source = must(a->registerRegion({here.data(), here.size(), Device{}}, Access::readWrite));
    sink = must(b->registerRegion({there.data(), there.size(), Device{}}, Access::readWrite));
  }
  void connect() {
    ASSERT_TRUE(toB->connect(toA->address()).ok());
    ASSERT_TRUE(toA->connect(toB->address()).ok());
    remote = must(toB->importKey(sink->key(), kPatience, nullptr));
  }
  // One put of everything, driven to its end.
  Status put() {
    Completion completion(1);
    const Op op{OpKind::put, here.data(), source.get(), remote.get(), 0, here.size(), &completion};
    const Deadline deadline = kPatience;
    bool posted = false;
    while (!completion.done()) {
      if (!posted) posted = toB->post({&op, 1}) == 1;
      a->progress(earlier(deadline, std::chrono::milliseconds(100)));
      if (deadline.passed()) std::abort();  // the operation points to this stack frame
    }
    return completion.status();
  }

  std::string here = std::string(1000, 'h');
  std::string there = std::string(1000, 't');
  std::shared_ptr<Lease> leaseOfA = std::make_shared<Lease>(std::chrono::minutes(2));
  std::shared_ptr<Lease> leaseOfB = std::make_shared<Lease>(std::chrono::minutes(2));
  std::unique_ptr<Transport> a, b;
  std::unique_ptr<Registration> source, sink;
  std::unique_ptr<Link> toB, toA;
  std::unique_ptr<RemoteMemory> remote;
};

}  // namespace hmc::ucx
