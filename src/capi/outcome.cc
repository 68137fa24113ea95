#include "capi/outcome.h"

#include "smem/host/smem_codes.h"

namespace hmc::capi {

namespace {

struct LastError {
  std::string sentence;
  std::string taken;  // what takeLastSentence() answered
};
thread_local LastError last;

int32_t codeOf(Code code) {
  switch (code) {
    case Code::ok:
      return SMEM_OK;
    case Code::invalidArgument:
    case Code::outOfRange:
      return SMEM_INVALID_PARAM;
    case Code::notFound:
      return SMEM_OBJECT_NOT_EXISTS;
    case Code::alreadyExists:
      return SMEM_DUPLICATED_OBJECT;
    case Code::exhausted:
      return SMEM_MALLOC_FAILED;
    case Code::deadlineExceeded:
      return SMEM_TIMEOUT;
    case Code::unsupported:
    case Code::permissionDenied:
    case Code::cancelled:
    case Code::disconnected:
    case Code::failed:
      break;
  }
  return SMEM_ERROR;
}

}  // namespace

int32_t fail(int32_t code, std::string sentence) {
  last.sentence = std::move(sentence);
  return code;
}

int32_t fail(const Status& status) {
  return fail(codeOf(status.code()), status.message());
}

const char* lastSentence() {
  return last.sentence.c_str();
}

const char* takeLastSentence() {
  last.taken = std::move(last.sentence);
  last.sentence.clear();
  return last.taken.c_str();
}

}  // namespace hmc::capi
