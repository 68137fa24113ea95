#pragma once

#include <cstdint>
#include <string>

#include "hmc/result.h"

namespace hmc::capi {

// Keeps the sentence for smem_get_last_err_msg() and answers the code.
int32_t fail(int32_t code, std::string sentence);
// The code that goes with a Status that is not ok.
int32_t fail(const Status& status);
// The same for a function that answers a pointer.
inline void* failPointer(int32_t code, std::string sentence) {
  fail(code, std::move(sentence));
  return nullptr;
}
inline void* failPointer(const Status& status) {
  fail(status);
  return nullptr;
}

// SMEM_OK or fail().
inline int32_t finish(const Status& status) {
  return status.ok() ? 0 : fail(status);
}

const char* lastSentence();
// The sentence, and none from then on.
const char* takeLastSentence();

}  // namespace hmc::capi
