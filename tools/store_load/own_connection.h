#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/codec.h"
#include "base/random.h"
#include "control/byte_stream.h"
#include "control/dialler.h"
#include "control/frame.h"
#include "control/security.h"
#include "control/socket.h"
#include "store/wire.h"
#include "store_load/give_up.h"

namespace hmc::store {

// Asks a store of ours as cheaply as can be: the request is the same bytes every time, and of the
// answers only their frames are looked at.
class OwnConnection {
 public:
  void dial(const std::string& address) {
    control::ControlOptions options;
    need(control::addDefaults(options, {}));
    const control::Address parsed = need(control::parseAddress(address));
    control::Dialler dialler = need(control::Dialler::dial(parsed, options, kPatience));
    need(dialler.introduce(
        {randomBytes(control::kIdSize), false, "load", std::string(kProtocol), ""}, kPatience));
    stream_ = dialler.takeStream();
  }
  int fd() const { return stream_->fd(); }
  void prepareSet(const std::string& key, const std::string& value) {
    prepare({.op = Op::set, .key = key, .value = value, .leases = {0}});
  }
  void prepareGet(const std::string& key) { prepare({.op = Op::get, .key = key}); }
  void send() { need(writeAll(*stream_, request_, "load", kPatience)); }
  // How many answers came.
  size_t receive() {
    char bytes[4096];
    const control::Moved moved = stream_->read(bytes, sizeof(bytes));
    if (moved.ended || moved.errnum != 0) giveUp("the store has closed the connection");
    frames_.feed({bytes, moved.bytes});
    size_t answers = 0;
    while (auto frame = need(frames_.next())) {
      if (frame->type == control::FrameType::answer) ++answers;
    }
    return answers;
  }

 private:
  static constexpr std::chrono::seconds kPatience{60};

  template <class T>
  static T need(Result<T> result) {
    if (!result.ok()) giveUp(result.status().message());
    return *std::move(result);
  }
  static void need(const Status& status) {
    if (!status.ok()) giveUp(status.message());
  }
  void prepare(const Request& request) {
    request_ = control::frameBytes(
        control::FrameType::call,
        Writer().u64(1).u16(static_cast<uint16_t>(request.op)).raw(encode(request)).take());
  }

  std::unique_ptr<control::ByteStream> stream_;
  control::FrameReader frames_{control::kLargestFrame};
  std::string request_;
};

}  // namespace hmc::store
