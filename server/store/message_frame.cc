// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/store/message_frame.h"

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/message_lite.h"

namespace clerestory {
namespace {

constexpr std::size_t kVersionBytes = 1;
constexpr std::size_t kFrameBytes = 5;

std::uint32_t Checksum(absl::string_view frame) {
  const auto* const bytes = reinterpret_cast<const Bytef*>(frame.data());
  const uLong version = crc32_z(0, bytes, kVersionBytes);
  return static_cast<std::uint32_t>(
      crc32_z(version, bytes + kFrameBytes, frame.size() - kFrameBytes));
}

}  // namespace

std::string EncodeFrame(const google::protobuf::MessageLite& message) {
  const std::size_t size = message.ByteSizeLong();
  std::string frame(kFrameBytes + size, '\0');
  auto* const bytes = reinterpret_cast<std::uint8_t*>(frame.data());
  message.SerializeWithCachedSizesToArray(bytes + kFrameBytes);
  bytes[0] = kRecordFormatVersion;
  const std::uint32_t checksum = Checksum(frame);
  for (std::size_t i = 0; i < 4; ++i) {
    bytes[kVersionBytes + i] = static_cast<std::uint8_t>(checksum >> (8 * i));
  }
  return frame;
}

FrameState DecodeFrame(absl::string_view frame,
                       google::protobuf::MessageLite& into) {
  if (frame.size() < kFrameBytes) return FrameState::kDamaged;
  std::uint32_t checksum = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    checksum |= static_cast<std::uint32_t>(
                    static_cast<std::uint8_t>(frame[kVersionBytes + i]))
                << (8 * i);
  }
  if (checksum != Checksum(frame)) return FrameState::kDamaged;
  const auto version = static_cast<std::uint8_t>(frame[0]);
  if (version > kRecordFormatVersion) return FrameState::kNewer;
  if (version == 0) return FrameState::kDamaged;
  const absl::string_view message = frame.substr(kFrameBytes);
  return into.ParseFromArray(message.data(), static_cast<int>(message.size()))
             ? FrameState::kOk
             : FrameState::kDamaged;
}

}  // namespace clerestory
