#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/bond.h"
#include "base/loop.h"
#include "base/parcel.h"
#include "base/peer_user.h"
#include "hmc/deadline.h"
#include "hmc/result.h"

namespace hmc {

// Where another process can ask this one for descriptors, and both know whom they talk to: by the
// kernel's word a process of the same user on the same host, and by a Bond the other end of one
// conversation. A peer's claim to be on this host is worth nothing before ask() has worked.
//
// It listens on an abstract unix socket, which exists per network namespace: who cannot reach it is
// not on "the same host" in our sense. Safe from any thread.
class FdExchange {
 public:
  static Result<std::unique_ptr<FdExchange>> create();
  ~FdExchange() { loop_->stop(); }

  // The abstract name others dial.
  const std::string& name() const { return name_; }

  // Answers what the other end of that conversation asks, until withdraw(). Runs on the exchange's
  // thread, one at a time, and must not wait for a peer.
  using Handler = std::function<Result<Parcel>(Parcel request)>;
  // The token under which it can be asked.
  std::string serve(Bond bond, Handler handler);
  // The same for one descriptor, of which it takes a duplicate.
  Result<std::string> offer(int fd, Bond bond);
  // Once it returns, the handler neither runs nor will.
  void withdraw(const std::string& token);

  struct Answer {
    Parcel parcel;
    PeerProcess from;
  };
  // Asks what serves that token in the exchange called `name`, in this or another process.
  // permissionDenied, before a word is said, when another user's process listens there; notFound
  // when nothing there knows the token and the bond.
  static Result<Answer> ask(const std::string& name, const std::string& token, const Bond& bond,
                            const Parcel& request, Deadline deadline);
  // What offer() offers.
  static Result<Fd> fetch(const std::string& name, const std::string& token, const Bond& bond,
                          Deadline deadline);

  // True when nobody listens under that name any more: its process, or its owner there, has ended.
  // Does not block and needs no answer.
  static bool gone(const std::string& name);

 private:
  struct Served {
    Bond bond;
    Handler handler;
  };
  FdExchange(std::string name, Fd listener, std::shared_ptr<Loop> loop);
  void accept();
  void answer(int client);
  // The whole reply; nothing for who does not know the token and its bond.
  Parcel reply(Parcel request);

  const std::string name_;
  const Fd listener_;
  std::mutex serving_;  // held while a handler runs; taken before mutex_
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Served>> served_;  // guarded by mutex_
  const std::shared_ptr<Loop> loop_;
  std::unique_ptr<Loop::Watch> watch_;  // the loop's, as the next
  Loop::Timer retry_;
};

}  // namespace hmc
