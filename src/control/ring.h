#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "hmc/deadline.h"
#include "hmc/result.h"

namespace hmc::control {

// Two rings in shared memory, one per direction, for messages between two processes of one host.
// Each ring has one producer and one consumer and is made of cache lines: a word, and 56 bytes. A
// record is one line or several; its first word says what it is and is written last, so that the
// consumer watches the very line that the bytes come in, and a short message costs one line. Both
// sides keep their own position privately and believe nothing that the other can write: a position
// or word that cannot be is "corrupt".

inline constexpr size_t kRingLine = 64;
inline constexpr size_t kRingLines = 1024;
inline constexpr size_t kRingSize = kRingLines * kRingLine;
// A longer message travels in several records.
inline constexpr size_t kLargestRecord = kRingSize / 4;
// What fits into one line.
inline constexpr size_t kShortRecord = kRingLine - sizeof(uint64_t);

struct RingState;  // the shared words of one direction
struct RingLine;

// The mapping, as the acceptor (who creates it) or the dialler (who fetches it) sees it.
class RingMemory {
 public:
  // `fd` is to be offered to the peer; it is sealed, so that nobody can pull the memory away.
  struct Created {
    std::shared_ptr<RingMemory> memory;
    Fd fd;
  };
  static Result<Created> create();
  static Result<std::shared_ptr<RingMemory>> attach(const Fd& fd);
  ~RingMemory();
  RingMemory(const RingMemory&) = delete;
  RingMemory& operator=(const RingMemory&) = delete;

  RingState& state(int direction) const;
  RingLine* lines(int direction) const;

 private:
  explicit RingMemory(void* base) : base_(static_cast<char*>(base)) {}
  char* const base_;
};

inline constexpr int kAcceptorToDialler = 0;
inline constexpr int kDiallerToAcceptor = 1;

struct RingRecord {
  uint8_t kind = 0;
  uint16_t flags = 0;
  bool more = false;       // the message goes on in the next record
  bool abandoned = false;  // forget the records of the message that was not finished
};

enum class RingOutcome { done, notNow, corrupt };

// One thread at a time.
class RingWriter {
 public:
  RingWriter(std::shared_ptr<RingMemory> memory, int direction);

  // notNow when there is no room. Wakes the consumer when it sleeps; no system call otherwise.
  RingOutcome write(const RingRecord& record, std::string_view payload);

  // To wait for room: look at the ticket, announce, try once more, then wait. wakeWaiter() ends
  // the wait for another reason, from any thread.
  uint32_t ticket() const;
  void announceWaiting();
  void waitForRoom(uint32_t ticket, Deadline deadline) const;
  void wakeWaiter();

 private:
  bool hasRoom(size_t lines);

  std::shared_ptr<RingMemory> memory_;
  RingState* state_;
  RingLine* lines_;
  uint64_t tail_ = 0;
  uint64_t head_ = 0;  // the consumer's, as last looked at: only when it seems full
  bool corrupt_ = false;
};

// read() and release() one thread at a time; the rest from any thread.
class RingReader {
 public:
  RingReader(std::shared_ptr<RingMemory> memory, int direction);

  // Appends the next record's bytes to `payload`.
  RingOutcome read(RingRecord& record, std::string& payload);
  // Reads the next record if it is a whole message of that kind and size, in one line.
  bool readShort(uint8_t kind, void* data, size_t size);
  // Gives the producer the room of what was read, once it is worth telling.
  void release();

  // A glance without a lock; may be wrong, never for long.
  bool readable() const;
  // The word that waiters sleep on; the producer changes it when it sees the announcement.
  std::atomic<uint32_t>& signal() const;
  void announceSleeping() const;

 private:
  std::shared_ptr<RingMemory> memory_;
  RingState* state_;
  const RingLine* lines_;
  std::atomic<uint64_t> head_{0};
  uint64_t released_ = 0;
};

}  // namespace hmc::control
