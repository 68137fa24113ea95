#include "store/store.h"

#include "caller.h"
#include "hmc/node.h"
#include "hmc/store.h"

namespace hmc::test {

namespace {

// A store in each of the two, and a client of the other one's.
class StoreCaller : public Caller {
 public:
  explicit StoreCaller(const Circumstances& circumstances)
      : lease_(circumstances.lease),
        server_(StoreServer::start("tcp://" + circumstances.host + ":0").value()) {}

  std::string introduction() const override { return server_.address(); }
  Status meet(const std::string& introduction) override;
  std::vector<Call> calls() override;
  // A server and a client, whose goodbyes have a second each where nobody answers.
  std::chrono::milliseconds ends() const override { return std::chrono::seconds(2); }

 private:
  Status revoke(Timeout timeout);

  const std::chrono::milliseconds lease_;
  StoreServer server_;
  std::string address_;
  std::shared_ptr<store::Store> store_;
  std::unique_ptr<store::Watch> watch_;
  // Of one thread each.
  std::shared_ptr<store::Store> opened_;
  std::shared_ptr<store::KeyLease> leased_, revoked_;
};

Status StoreCaller::meet(const std::string& introduction) {
  address_ = introduction;
  auto opened = store::openStore(address_, {}, kDefaultTimeout);
  if (!opened.ok()) return opened.status();
  store_ = *std::move(opened);
  auto watch = store_->watch("set");
  if (!watch.ok()) return watch.status();
  watch_ = *std::move(watch);
  return store_->set("there", "value", kDefaultTimeout);
}

Status StoreCaller::revoke(Timeout timeout) {
  const Deadline deadline(timeout);
  auto lease = store_->lease(lease_, deadline);
  if (!lease.ok()) return lease.status();
  revoked_ = *std::move(lease);
  const Status set = store_->set("leased", "value", deadline, revoked_);
  return set.ok() ? revoked_->revoke(deadline) : set;
}

std::vector<Call> StoreCaller::calls() {
  using T = Timeout;
  constexpr std::chrono::milliseconds kAtOnce{0};
  return {
      {"openStore",
       [this](T t) {
         auto opened = store::openStore(address_, {}, t);
         if (opened.ok()) opened_ = *opened;
         return opened.status();
       },
       kAtOnce, true, [this] { opened_.reset(); }},
      {"get", [this](T t) { return store_->get("there", t).status(); }},
      {"await", [this](T t) { return store_->await("there", t).status(); }},
      {"awaitNever", [this](T t) { return store_->await("nowhere", t).status(); }, kAtOnce, false},
      {"list", [this](T t) { return store_->list("", t).status(); }},
      {"set", [this](T t) { return store_->set("set", std::string(50000, 's'), t); }},
      {"swap",
       [this](T t) { return store_->compareAndSet("there", "value", "value", t).status(); }},
      {"add", [this](T t) { return store_->add("sum", 1, t).status(); }},
      {"append", [this](T t) { return store_->append("appended", "a", t).status(); }},
      {"remove", [this](T t) { return store_->remove("nothing", t); }},
      {"removeAll", [this](T t) { return store_->removeAll("nothing/", t); }},
      {"watch", [this](T t) { return watch_->next(t).status(); }},
      {"lease",
       [this](T t) {
         auto lease = store_->lease(lease_, t);
         if (lease.ok()) leased_ = *lease;
         return lease.status();
       },
       kAtOnce, true, [this] { leased_.reset(); }},
      {"revoke", [this](T t) { return revoke(t); }, kAtOnce, true, [this] { revoked_.reset(); }},
  };
}

}  // namespace

std::unique_ptr<Caller> makeStoreCaller(const Circumstances& circumstances) {
  return std::make_unique<StoreCaller>(circumstances);
}

}  // namespace hmc::test
