#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "base/fd.h"
#include "hmc/result.h"
#include "store/state.h"

namespace hmc::store {

// A store's changes in a file, so that a server that is started again goes on with what it knew.
// Each change is a record with a checksum, appended before its request is answered: it outlives the
// process. The file reaches the disk within a second: a host that crashes may lose so much. When it
// has doubled since it was last written anew, it is written anew with what is still true. For one
// thread at a time.
class Journal final : public Recorder {
 public:
  // Reads what the folder holds into the state, which then tells it of every change; `state` stays
  // valid for longer. Leases get their whole time again. alreadyExists when another server uses the
  // folder; an incomplete last record is dropped; anything else that is damaged is refused.
  static Result<std::unique_ptr<Journal>> open(const std::string& folder, State& state,
                                               State::Time now);
  ~Journal() override;

  // Writes what has changed. When that fails, the next call writes everything anew.
  Status commit();

  void set(std::string_view key, std::string_view value, uint64_t lease) override;
  void removed(std::string_view key) override;
  void granted(uint64_t lease, std::chrono::milliseconds ttl) override;
  void ended(uint64_t lease) override;

 private:
  Journal(std::string folder, State& state, Fd lock);
  Status load(State::Time now);
  Status rewrite();
  Status append();
  void sync(const std::stop_token& stop);

  const std::string folder_;
  const std::string path_;
  State& state_;
  const Fd lock_;        // held while it is open
  std::string pending_;  // records that are not written
  size_t size_ = 0;      // of the file
  size_t compact_ = 0;   // what it was when it was written anew
  bool behind_ = false;  // the file lacks something

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::shared_ptr<const Fd> file_;  // guarded by mutex_ for sync(): replaced by rewrite()
  bool dirty_ = false;              // guarded by mutex_
  std::jthread syncing_;
};

}  // namespace hmc::store
