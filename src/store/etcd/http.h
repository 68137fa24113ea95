#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "hmc/deadline.h"
#include "hmc/result.h"
#include "store/etcd/address.h"
#include "store/etcd/library.h"

namespace hmc::store::etcd {

// More than any list of keys has, so that whatever listens there cannot fill our memory.
inline constexpr size_t kLargestAnswer = size_t{256} << 20;

// How an exchange ended.
struct Ended {
  Status status;      // ok: the answer came to its end
  bool sent = false;  // false: nothing of the request was sent
  long code = 0;      // of HTTP, when there was an answer
};

// A POST of JSON and its answer, which may be a stream without an end. The functions are called on
// the thread hmc-etcd and must not wait.
struct Exchange {
  std::string url;
  std::string token;  // for etcd; empty: none
  std::string body;
  Deadline deadline;
  std::function<bool(std::string_view bytes)> receive;  // false ends it
  std::function<void(const Ended&)> ended;              // once
};

// Exchanges with HTTP servers, any number at a time, all by one thread. Connections stay open for
// the next exchange. A request of which something was sent is never sent twice. Safe from any
// thread.
class Http {
 public:
  static Result<std::unique_ptr<Http>> create(const Address& address);
  ~Http();
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;

  // A number for cancel(). It may have ended before this returns.
  uint64_t start(Exchange exchange);
  // Soon ends it with `cancelled`, unless it has ended.
  void cancel(uint64_t id);
  // Ends all with `cancelled` and then the thread. What is started afterwards ends at once.
  void close();

 private:
  class Transfer;
  struct Free {
    const Library* library;
    void operator()(CURLM* multi) const { library->curl_multi_cleanup(multi); }
  };
  Http(std::shared_ptr<const Library> library, const Address& address);
  void serve();
  // What other threads asked for. False when it was the last time.
  bool takeWishes();
  void begin(uint64_t id, Exchange exchange);
  void reap();
  void end(uint64_t id, const Ended& how);

  const std::shared_ptr<const Library> library_;
  const Address address_;  // for its certificates
  const std::unique_ptr<CURLM, Free> multi_;
  std::map<uint64_t, std::unique_ptr<Transfer>> transfers_;  // the thread's

  std::mutex mutex_;  // guards everything below
  uint64_t lastId_ = 0;
  std::vector<std::pair<uint64_t, Exchange>> toStart_;
  std::vector<uint64_t> toCancel_;
  bool ending_ = false;
  bool ended_ = false;   // the thread takes nothing any more
  std::jthread thread_;  // set before anybody else sees the object
};

}  // namespace hmc::store::etcd
