#include "hmc/status.h"

#include "base/last_error.h"

namespace hmc {

const char* status_to_string(status_t status) {
  switch (status) {
    case status_t::SUCCESS:
      return "Succeeded";
    case status_t::ERROR:
      return "Error";
    case status_t::UNSUPPORT:
      return "Unsupported";
    case status_t::INVALID_CONFIG:
      return "Invalid Config";
    case status_t::TIMEOUT:
      return "Timeout";
    case status_t::NOT_FOUND:
      return "Not Found";
  }
  return "Unknown Status";
}

const char* codeName(Code code) {
  switch (code) {
    case Code::ok:
      return "ok";
    case Code::invalidArgument:
      return "invalid argument";
    case Code::outOfRange:
      return "out of range";
    case Code::notFound:
      return "not found";
    case Code::alreadyExists:
      return "already exists";
    case Code::unsupported:
      return "unsupported";
    case Code::permissionDenied:
      return "permission denied";
    case Code::exhausted:
      return "exhausted";
    case Code::deadlineExceeded:
      return "deadline exceeded";
    case Code::cancelled:
      return "cancelled";
    case Code::disconnected:
      return "disconnected";
    case Code::failed:
      return "failed";
  }
  return "unknown";
}

Status::Status(Code code, std::string message) {
  if (code != Code::ok) rep_ = std::make_shared<const Rep>(Rep{code, std::move(message)});
}

const std::string& Status::message() const {
  static const std::string kEmpty;
  return rep_ ? rep_->message : kEmpty;
}

std::string Status::toString() const {
  return ok() ? "ok" : std::string(codeName(code())) + ": " + message();
}

Status Status::within(const std::string& where) const {
  return ok() ? Status() : Status(code(), where + ": " + message());
}

namespace {
Status& lastStatusOfThisThread() {
  thread_local Status status;
  return status;
}
}  // namespace

const Status& lastStatus() {
  return lastStatusOfThisThread();
}

const std::string& lastError() {
  return lastStatus().message();
}

void setLastStatus(Status status) {
  lastStatusOfThisThread() = std::move(status);
}

}  // namespace hmc
