// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_STORE_MESSAGE_FRAME_H_
#define CLERESTORY_SERVER_STORE_MESSAGE_FRAME_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/message_lite.h"

namespace clerestory {

// A message of `proto/clerestory/storage/v1` as a store keeps it. In every
// version, the bytes begin with
//
//   1 byte   the format version
//   4 bytes  the CRC-32 (zlib's) of that byte and of all that follows these
//            four, little-endian
//
// so that damage is told from what a newer server wrote. The message follows.
//
// Everything here is pure and safe from any thread.

// What is written. Raised with every change to the messages, however small:
// what an older server does not know, it must not read and write back.
inline constexpr std::uint8_t kRecordFormatVersion = 4;

// Returns `message` in its frame.
std::string EncodeFrame(const google::protobuf::MessageLite& message);

// What a frame is.
enum class FrameState {
  kOk,
  kDamaged,
  kNewer,  // Whole, and of a later version.
};

// Reads the message of `frame` into `into`, which is of its type.
FrameState DecodeFrame(absl::string_view frame,
                       google::protobuf::MessageLite& into);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_STORE_MESSAGE_FRAME_H_
