#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/fd.h"
#include "base/loop.h"
#include "hmc/deadline.h"
#include "hmc/result.h"

namespace hmc {

// Gives file descriptors of this process to other processes of the same user on the same host, by
// an unguessable token. It listens on an abstract unix socket, which exists per network namespace:
// who cannot reach it is not on "the same host" in our sense. The client's uid is checked by the
// kernel's word (SO_PEERCRED) before anything is read. Safe from any thread.
class FdExchange {
 public:
  static Result<std::unique_ptr<FdExchange>> create();
  ~FdExchange() { loop_->stop(); }

  // The abstract name others dial.
  const std::string& name() const { return name_; }

  // Takes a duplicate of fd and answers the token under which others can fetch it until withdraw().
  Result<std::string> offer(int fd);
  void withdraw(const std::string& token);

  // Fetches the descriptor behind `token` from the exchange called `name`, in this or another
  // process.
  static Result<Fd> fetch(const std::string& name, const std::string& token, Deadline deadline);

  // True when nobody listens under that name any more: its process, or its owner there, has ended.
  // Does not block and needs no answer.
  static bool gone(const std::string& name);

 private:
  FdExchange(std::string name, Fd listener, std::shared_ptr<Loop> loop);
  void accept();
  void answer(int client);

  const std::string name_;
  const Fd listener_;
  std::mutex mutex_;
  std::map<std::string, Fd> offers_;  // guarded by mutex_
  const std::shared_ptr<Loop> loop_;
  std::unique_ptr<Loop::Watch> watch_;  // the loop's, as the next
  Loop::Timer retry_;
};

}  // namespace hmc
