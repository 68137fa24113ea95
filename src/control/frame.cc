#include "control/frame.h"

#include "base/codec.h"
#include "base/error.h"

namespace hmc::control {

FrameHeaderBytes frameHeader(FrameType type, uint8_t detail, uint16_t flags, size_t length) {
  auto size = static_cast<uint32_t>(length);
  return {static_cast<char>(size),         static_cast<char>(size >> 8),
          static_cast<char>(size >> 16),   static_cast<char>(size >> 24),
          static_cast<char>(type),         static_cast<char>(detail),
          static_cast<char>(flags & 0xff), static_cast<char>(flags >> 8)};
}

std::string frameBytes(FrameType type, std::string_view payload) {
  auto header = frameHeader(type, 0, 0, payload.size());
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
  if (length > limit_) {
    return error(Code::failed, "it announced a frame of {} bytes where {} is the most", length,
                 limit_);
  }
  if (rest.size() - kFrameHeader < length) return std::optional<Frame>();
  frame.payload = rest.substr(kFrameHeader, length);
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
