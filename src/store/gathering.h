#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hmc/deadline.h"
#include "hmc/store.h"
#include "store/group.h"
#include "store/server.h"

namespace hmc::store {

// See hmc::Gathering. For one thread at a time.
class GatheringImpl {
 public:
  GatheringImpl(std::string store, GatheringOptions options, std::string mine)
      : address_(std::move(store)), options_(std::move(options)), mine_(std::move(mine)) {}
  ~GatheringImpl();
  GatheringImpl(const GatheringImpl&) = delete;
  GatheringImpl& operator=(const GatheringImpl&) = delete;

  Result<std::vector<std::string>> wait(Deadline deadline);

 private:
  Status open(Deadline deadline);
  Status join(Deadline deadline);
  Status meet(Deadline deadline);
  Status missing() const;

  const std::string address_;
  const GatheringOptions options_;
  const std::string mine_;
  std::unique_ptr<Server> server_;  // ours, if nobody else serves the store
  std::shared_ptr<Store> store_;
  std::unique_ptr<Group> group_;
  std::optional<Deadline> patience_;   // with another process that has our rank
  std::vector<std::string> everyone_;  // once all were there
  std::unique_ptr<Rendezvous> rounds_;
  bool seen_ = false;  // by all
  bool left_ = false;
  bool over_ = false;  // all have left
};

}  // namespace hmc::store
