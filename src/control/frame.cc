#include "control/frame.h"

#include <endian.h>

#include <cstring>

#include "base/codec.h"
#include "base/crc32c.h"
#include "base/error.h"

namespace hmc::control {

namespace {

// What a header's own checksum covers.
constexpr size_t kCovered = kFrameHeader - sizeof(uint32_t);

uint32_t sumOf(std::string_view bytes, uint32_t before = 0) {
  return crc32c(before, bytes.data(), bytes.size());
}

Status altered(std::string_view what, uint32_t is, uint32_t was) {
  return error(Code::failed,
               "{} was altered on the way: its CRC-32C is {:#010x} and was {:#010x}, and what "
               "follows cannot be told apart; connect again",
               what, is, was);
}

}  // namespace

FrameHeaderBytes frameHeader(FrameType type, uint8_t detail, uint16_t flags,
                             std::string_view payload, std::string_view more) {
  const size_t length = payload.size() + more.size();
  return sealedHeader(type, detail, flags, static_cast<uint32_t>(length),
                      sumOf(more, sumOf(payload)));
}

FrameHeaderBytes sealedHeader(FrameType type, uint8_t detail, uint16_t flags, uint32_t length,
                              uint32_t sum) {
  FrameHeaderBytes bytes;
  const auto put = [&bytes](size_t at, uint32_t value) {
    value = htole32(value);
    std::memcpy(bytes.data() + at, &value, sizeof(value));
  };
  put(0, length);
  put(4, static_cast<uint32_t>(type) | static_cast<uint32_t>(detail) << 8 |
             static_cast<uint32_t>(flags) << 16);
  put(8, sum);
  put(kCovered, sumOf({bytes.data(), kCovered}));
  return bytes;
}

std::string frameBytes(FrameType type, std::string_view payload) {
  auto header = frameHeader(type, 0, 0, payload);
  std::string bytes(header.data(), header.size());
  bytes.append(payload);
  return bytes;
}

void FrameReader::feed(std::string_view bytes) {
  if (used_ > 0) buffer_.erase(0, used_);
  used_ = 0;
  buffer_.append(bytes);
}

Result<std::optional<Frame>> FrameReader::next() {
  std::string_view rest = std::string_view(buffer_).substr(used_);
  if (rest.size() < kFrameHeader) return std::optional<Frame>();
  Reader header(rest.substr(0, kFrameHeader));
  uint32_t length = header.u32();
  Frame frame;
  frame.type = static_cast<FrameType>(header.u8());
  frame.detail = header.u8();
  frame.flags = header.u16();
  const uint32_t sum = header.u32();
  const uint32_t own = header.u32();
  if (const uint32_t is = sumOf(rest.substr(0, kCovered)); is != own)
    return altered("the header of a frame", is, own);
  if (length > limit_) {
    return error(Code::failed, "it announced a frame of {} bytes where {} is the most", length,
                 limit_);
  }
  if (rest.size() - kFrameHeader < length) return std::optional<Frame>();
  frame.payload = rest.substr(kFrameHeader, length);
  if (const uint32_t is = sumOf(frame.payload); is != sum)
    return altered(fmt::format("a frame of {} bytes", length), is, sum);
  last_ = kFrameHeader + length;
  used_ += last_;
  return std::optional<Frame>(frame);
}

size_t FrameReader::missing() const {
  size_t have = buffer_.size() - used_;
  if (have < kFrameHeader) return kFrameHeader - have;
  uint32_t length = Reader(std::string_view(buffer_).substr(used_, kFrameHeader)).u32();
  return kFrameHeader + length - have;
}

}  // namespace hmc::control
