#include "api/pipeline.h"

#include <algorithm>
#include <deque>

#include "base/error.h"

namespace hmc {

namespace {

constexpr size_t kDefaultChunk = size_t{4} << 20;
// A chunk that is late holds those behind it up no longer than this.
constexpr std::chrono::milliseconds kLookAtAll{1};

// The chunks that are under way.
class Window {
 public:
  explicit Window(size_t most) : most_(most) {}
  ~Window() {
    for (Ticket& chunk : chunks_) (void)chunk.cancel();
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  bool full() const { return chunks_.size() == most_; }
  bool empty() const { return chunks_.empty(); }
  void add(Ticket chunk) { chunks_.push_back(std::move(chunk)); }

  // Returns when at least one chunk has ended; those that did leave the window.
  Status waitForOne(Deadline deadline) {
    for (const size_t before = chunks_.size(); chunks_.size() == before;) {
      Status oldest = chunks_.front().wait(earlier(deadline, kLookAtAll).left());
      if (!chunks_.front().over() && deadline.passed()) return oldest;
      HMC_TRY(removeEnded());
    }
    return Status();
  }

 private:
  Status removeEnded() {
    Status first;
    std::erase_if(chunks_, [&](Ticket& chunk) {
      if (!chunk.over()) return false;
      const Status outcome = chunk.wait(Timeout(0));
      if (first.ok()) first = outcome;
      return true;
    });
    return first;
  }

  const size_t most_;
  std::deque<Ticket> chunks_;  // oldest first
};

}  // namespace

Status runPipeline(OpKind kind, const std::shared_ptr<LocalMemory>& local,
                   const std::shared_ptr<RemoteMapping>& remote, const Block& block,
                   const PipelineOptions& options, Deadline deadline) {
  if (options.mostAtOnce == 0)
    return error(Code::invalidArgument, "max_inflight is 0: at least one chunk must be under way");
  // Checks the whole range before anything moves.
  if (block.size == 0 || !fits(block.localOffset, block.size, local->region().size) ||
      !fits(block.remoteOffset, block.size, remote->size())) {
    return remote->run(kind, *local, block.localOffset, block.remoteOffset, block.size,
                       deadline.left());
  }
  const size_t chunk = options.chunk == 0 ? kDefaultChunk : options.chunk;
  Window window(options.mostAtOnce);
  for (size_t done = 0; done < block.size;) {
    const size_t size = std::min(chunk, block.size - done);
    const Strided piece{block.localOffset + done, 0, block.remoteOffset + done, 0, 1, size};
    HMC_ASSIGN(Ticket started, RemoteMapping::start(remote, kind, local, piece));
    window.add(std::move(started));
    done += size;
    if (window.full()) HMC_TRY(window.waitForOne(deadline));
  }
  while (!window.empty()) HMC_TRY(window.waitForOne(deadline));
  return Status();
}

}  // namespace hmc
