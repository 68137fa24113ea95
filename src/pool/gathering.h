#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "hmc/deadline.h"
#include "hmc/store.h"
#include "pool/served_store.h"
#include "store/group.h"

namespace hmc::pool {

// See hmc::Gathering. For one thread at a time, except cancel().
class GatheringImpl {
 public:
  explicit GatheringImpl(Joining joining) : joining_(std::move(joining)) {}
  ~GatheringImpl();
  GatheringImpl(const GatheringImpl&) = delete;
  GatheringImpl& operator=(const GatheringImpl&) = delete;

  uint32_t rank() const { return *joining_.options.rank; }
  uint32_t size() const { return joining_.options.capacity; }
  const std::string& store() const { return joining_.store; }
  Result<std::vector<std::string>> wait(const std::string& mine, Deadline deadline);
  void cancel() { cancelled_.request_stop(); }

 private:
  Status open(Deadline deadline);
  Status join(Deadline deadline);
  Status meet(Deadline deadline);
  Status exchange(const std::string& mine, Deadline deadline);
  Status part(Deadline deadline);
  Status awaitNews(Deadline deadline);
  Status missing(const Status& late) const;

  const Joining joining_;
  std::stop_source cancelled_;
  StoreOfPool store_;
  std::unique_ptr<store::Group> group_;
  std::unique_ptr<store::Rendezvous> rounds_;  // once all are there
  std::vector<std::string> everyone_;          // once all have told
  bool left_ = false;
  bool over_ = false;  // all have left
};

}  // namespace hmc::pool
