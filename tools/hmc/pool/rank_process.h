#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hmc/result.h"
#include "pool/guardian.h"
#include "pool/ranks.h"
#include "program.h"
#include "system_call.h"

namespace hmc::tool {

// What one rank prints on one stream, in whole lines with the rank in front.
class TaggedOutput {
 public:
  TaggedOutput(uint32_t rank, std::FILE* to) : tag_("[" + std::to_string(rank) + "] "), to_(to) {}
  TaggedOutput(TaggedOutput&&) = delete;

  // The end that the process writes to; only until it was started.
  Status open();
  void closeWriter() { pipe_.write = Fd(); }
  int reader() const { return pipe_.read.get(); }
  int writer() const { return pipe_.write.get(); }

  // Prints the lines that are there now, without waiting.
  void drain();
  // And what is left without an end of line.
  void finish();

 private:
  void print(bool all);

  const std::string tag_;
  std::FILE* const to_;
  Pipe pipe_;
  std::string pending_;
};

// One rank, in a process group of its own. It ends with us, also when we are killed: by the kernel
// at once, and with all that it has started by the guardian.
class RankProcess {
 public:
  // It takes all signals but `blocked`. The guardian outlives it.
  static Result<std::unique_ptr<RankProcess>> start(const RankOptions& options, uint32_t rank,
                                                    const sigset_t& blocked,
                                                    const Guardian& guardian);
  ~RankProcess() { end(); }
  RankProcess(RankProcess&&) = delete;

  uint32_t rank() const { return rank_; }
  bool running() const { return !status_; }
  // As a shell has it: 128 + signal for a violent end. Only when it is not running.
  int status() const { return *status_; }
  // To everything that it has started and is still in its group.
  void signal(int number) const;
  // Ends what is left of its group, reads the rest of its output, and takes its status.
  void end();

  // Readable when it has ended.
  int ended() const { return pidfd_.get(); }
  // Empty when its output is not tagged.
  std::vector<TaggedOutput*> outputs() const;

 private:
  RankProcess(uint32_t rank, const Guardian& guardian) : rank_(rank), guardian_(guardian) {}
  Status launch(const RankOptions& options, const sigset_t& blocked);

  const uint32_t rank_;
  const Guardian& guardian_;
  pid_t pid_ = -1;
  Fd pidfd_;
  std::optional<int> status_;
  std::unique_ptr<TaggedOutput> output_;
  std::unique_ptr<TaggedOutput> errors_;
};

}  // namespace hmc::tool
