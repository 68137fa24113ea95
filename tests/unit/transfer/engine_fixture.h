#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "fakes/faulty_transport.h"
#include "fakes/inprocess_transport.h"
#include "fakes/linked_test.h"
#include "transfer/engine.h"

namespace hmc {

inline constexpr size_t kSize = size_t{4} << 20;

// Two engines whose transports reach each other within this process; `a` is the origin.
class EngineFixture : public test::LinkedTest<Engine> {
 protected:
  void SetUp() override {
    auto wire = fakes::makeInProcessWire();
    a_ = std::make_unique<Engine>(
        wrap(fakes::makeFaulty(*fakes::createInProcess(wire, {8, 64 << 10}), faults_)));
    b_ = *fakes::createInProcess(wire, {8, 64 << 10});
    LinkOptions options;
    options.lease = std::make_shared<Lease>(kLease);
    options.initiator = true;
    link_ = *a_->transport().openLink(options);
    options.initiator = false;
    back_ = *b_->openLink(options);
    ASSERT_TRUE(link_->connect(back_->address()).ok());
    ASSERT_TRUE(back_->connect(link_->address()).ok());
    std::iota(local_.begin(), local_.end(), 1);
    fromHost_ = *a_->transport().registerRegion(hostRegion(local_), Access::readWrite);
    target_ = *b_->registerRegion(hostRegion(remote_), Access::readWrite);
    memory_ = *link_->importKey(target_->key(), std::chrono::seconds(10), nullptr);
    route_ = {link_.get(), fromHost_.get(), hostRegion(local_), memory_.get(), false, kLease};
  }

  // What the origin's engine gets.
  virtual std::unique_ptr<Transport> wrap(std::unique_ptr<Transport> transport) {
    return transport;
  }

  static Region hostRegion(std::vector<char>& bytes) { return {bytes.data(), bytes.size(), {}}; }

  static constexpr std::chrono::milliseconds kLease{300};
  std::shared_ptr<fakes::Faults> faults_ = std::make_shared<fakes::Faults>();
  std::vector<char> local_ = std::vector<char>(kSize);
  std::vector<char> remote_ = std::vector<char>(kSize);
  Route route_;
};

// Does not give up by itself, unless it was asked for a moment: only what finishes, or wake(), ends
// its progress(). So the bound on a round of the Poller does not hide a wake-up that is missing.
class PatientTransport final : public Transport {
 public:
  explicit PatientTransport(std::unique_ptr<Transport> inner)
      : Transport(inner->facts()), inner_(std::move(inner)) {}
  Result<std::unique_ptr<Registration>> registerRegion(const Region& region, Access access,
                                                       Exposure exposure) override {
    return inner_->registerRegion(region, access, exposure);
  }
  Result<std::unique_ptr<Link>> openLink(const LinkOptions& options) override {
    return inner_->openLink(options);
  }
  bool progress(Deadline until) override {
    if (until.left() < std::chrono::milliseconds(5)) return inner_->progress(until);
    ++sleeps;
    return inner_->progress(Deadline::never());
  }
  void wake() override { inner_->wake(); }

  std::atomic<int> sleeps{0};  // begun so far

 private:
  const std::unique_ptr<Transport> inner_;
};

// The origin's transport is patient: whoever waits for something that progress() does not see has
// to be woken.
class PatientFixture : public EngineFixture {
 protected:
  std::unique_ptr<Transport> wrap(std::unique_ptr<Transport> transport) override {
    auto patient = std::make_unique<PatientTransport>(std::move(transport));
    patient_ = patient.get();
    return patient;
  }
  bool awaitSleeps(int count) const {
    const Deadline late(std::chrono::seconds(60));
    while (patient_->sleeps < count && !late.passed()) std::this_thread::yield();
    return patient_->sleeps >= count;
  }
  PatientTransport* patient_ = nullptr;
};

}  // namespace hmc
